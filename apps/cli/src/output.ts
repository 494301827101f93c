// What goes where: data to stdout, everything else to stderr. With --json data are JSON: one document for one thing, one line per item
// of a list (so that a list of any length can be cut, filtered and read while it comes). Without a terminal nothing is chatty.
import type { Writable } from 'node:stream';
import { once } from 'node:events';
import { colourOf, type Colour } from './colour.js';
import { safeBlock, safeJson, safeLine } from './sanitise.js';
import { renderPairs, renderTable, type Column } from './table.js';
import { wrapText } from './textWidth.js';

export interface Screen extends Writable {
  isTTY?: boolean;
  columns?: number;
  rows?: number;
}

/** What the further lines of a sentence are indented by. */
const hanging = '  ';

export interface OutputOptions {
  stdout: Screen;
  stderr: Screen;
  json: boolean;
  quiet: boolean;
  colour: 'always' | 'never' | 'auto';
  columns: number | undefined;
}

export class Output {
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly stdout: Screen;
  readonly stderr: Screen;
  /** Of stdout. */
  readonly colour: Colour;
  /** Of stderr. */
  readonly saying: Colour;
  readonly #columns: number | undefined;

  constructor({ stdout, stderr, json, quiet, colour, columns }: OutputOptions) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.isJson = json;
    this.isQuiet = quiet;
    const isWanted = (screen: Screen): boolean =>
      colour === 'always' || (colour === 'auto' && !!screen.isTTY);
    this.colour = colourOf(isWanted(stdout) && !json);
    this.saying = colourOf(isWanted(stderr));
    this.#columns = columns;
  }

  /** The width of a terminal; undefined where nobody knows. */
  get width(): number | undefined {
    return this.stdout.isTTY ? (this.stdout.columns ?? 80) : this.#columns;
  }

  /** A line of data, already safe. */
  line(text = ''): void {
    this.stdout.write(`${text}\n`);
  }

  /** Bytes as they are, waiting for a slow reader. */
  async bytes(chunk: Uint8Array): Promise<void> {
    if (!this.stdout.write(chunk)) await once(this.stdout, 'drain');
  }

  /** A text of strangers, line by line, indented. */
  block(text: string, indent = '  '): void {
    for (const line of safeBlock(text).replace(/\n+$/, '').split('\n')) this.line(indent + line);
  }

  /** A sentence of our own, indented; on a terminal it is broken between words. */
  advice(text: string, indent = '  '): void {
    const room = (this.width ?? Infinity) - indent.length - hanging.length;
    for (const [i, line] of wrapText(safeLine(text), room).entries())
      this.line(indent + (i === 0 ? '' : hanging) + line);
  }

  heading(text: string): void {
    this.line();
    this.line(this.colour.bold(safeLine(text)));
  }

  /** One thing: its JSON, or what `show` prints. */
  one(value: unknown, show: () => void): void {
    if (!this.isJson) return show();
    const space = this.stdout.isTTY ? 2 : undefined;
    this.line(safeJson(JSON.stringify(value ?? null, undefined, space)));
  }

  jsonLine(value: unknown): void {
    this.line(safeJson(JSON.stringify(value)));
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void {
    for (const line of renderTable(columns, rows, { colour: this.colour, width: this.width }))
      this.line(line);
  }

  pairs(pairs: readonly (readonly [string, string | undefined])[]): void {
    for (const line of renderPairs(pairs, { colour: this.colour, width: this.width })) this.line(line);
  }

  /** Something for the person in front of it; silent with --quiet and where there is no terminal. */
  say(text: string): void {
    if (!this.isQuiet && this.stderr.isTTY) this.stderr.write(sentence(this.stderr, safeLine(text)));
  }

  /** What happened to something that was changed: to a person on stderr, to a program as JSON on stdout. */
  did(value: object, sentence: string): void {
    if (this.isJson) this.jsonLine(value);
    else this.say(sentence);
  }

  /** What a dry run found, which is the data that were asked for. */
  would(value: object, sentence: string): void {
    if (this.isJson) this.jsonLine({ ...value, dryRun: true });
    else this.line(safeLine(sentence));
  }

  /** Something that must be seen, also in a log. */
  warn(text: string): void {
    this.stderr.write(sentence(this.stderr, safeLine(text), 'warning:', this.saying.yellow));
  }
}

/** One sentence with its end of line; on a terminal it is broken between words. What it begins with may have a colour. */
export function sentence(
  screen: Screen,
  text: string,
  opening = '',
  style: (text: string) => string = (plain) => plain,
): string {
  const whole = opening === '' ? text : `${opening} ${text}`;
  const lines = screen.isTTY ? wrapText(whole, screen.columns ?? 80) : [whole];
  return `${style(opening)}${lines.join('\n').slice(opening.length)}\n`;
}
