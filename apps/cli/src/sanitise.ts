// Text of strangers on a terminal. A payload may hold escape sequences that move the cursor, set the title or rename what was printed
// before; characters that turn the direction of writing can make a name look like another. None of them is printed: what stands
// there instead is how a programmer would write it (`\x1b`, `\u202e`).

/** Control characters but tab and newline, halves of pairs, separators of lines, and invisible directions. */
const unsafe = /(?![\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufeff]|\p{Bidi_Control}/gu;

/** Several lines stay several lines. */
export function safeBlock(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(unsafe, written);
}

/** One line: a newline is shown as it is written. */
export function safeLine(text: string): string {
  return safeBlock(text).replace(/\n/g, '\\n').replace(/\t/g, '\\t');
}

/** JSON stays JSON: what a terminal could act on is escaped the way JSON escapes it. */
export function safeJson(text: string): string {
  return text.replace(unsafe, fourDigits);
}

function written(character: string): string {
  const code = character.charCodeAt(0);
  return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : fourDigits(character);
}

function fourDigits(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
