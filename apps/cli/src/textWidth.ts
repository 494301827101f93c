// How many columns a text takes on a terminal, and how to cut or break it to a number of them. Marks that sit on a letter take none, letters of
// East Asia and pictures take two.

const none = /^(\p{Mn}|\p{Me}|\p{Cf})$/u;
const two =
  /^(\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])$/u;
const plain = /^[\x20-\x7e]*$/;

export function textWidth(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** The text if it fits, otherwise its beginning and an ellipsis. */
export function cutText(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  if (columns <= 0) return '';
  let [kept, width] = ['', 0];
  for (const character of text) {
    const next = width + characterWidth(character);
    if (next > columns - 1) break;
    kept += character;
    width = next;
  }
  return `${kept}…`;
}

/** Lines of at most so many columns, broken between words; a word that is longer stays whole, so that it can be copied. */
export function wrapText(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)!} ${word}`;
    if (lines.length > 0 && textWidth(longer) <= columns) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

export function padText(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const space = ' '.repeat(Math.max(0, columns - textWidth(text)));
  return align === 'right' ? space + text : text + space;
}

function characterWidth(character: string): number {
  if (plain.test(character)) return 1;
  if (none.test(character)) return 0;
  return two.test(character) ? 2 : 1;
}
