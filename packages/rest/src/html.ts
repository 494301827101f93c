// HTML from templates: whatever is put into one is escaped, unless it is HTML that was made here.

export class Html {
  constructor(readonly text: string) {}
}

type Piece = string | number | Html | undefined | false | readonly Piece[];

export function html(texts: TemplateStringsArray, ...pieces: Piece[]): Html {
  return new Html(texts.map((text, index) => text + shown(pieces[index])).join(''));
}

function shown(piece: Piece): string {
  if (piece === undefined || piece === false) return '';
  if (piece instanceof Html) return piece.text;
  if (typeof piece === 'object') return piece.map(shown).join('');
  return escaped(String(piece));
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
