// What was found: the same defect is told once, with how often it was met and a command that shows it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Crafted } from './craft.js';
import type { Identity } from './identities.js';

export interface Finding {
  what: string;
  where: string;
  times: number;
  /** The number of the request, and what was bent in it. */
  first: string;
  curl: string;
}

const longestInlineBytes = 2_000;

export class Findings {
  readonly #found = new Map<string, Finding>();
  readonly #folder: string;

  /** Bodies that are too long for a command line are kept in this folder. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  get list(): Finding[] {
    return [...this.#found.values()];
  }

  add(what: string, index: number, url: string, crafted: Crafted, identity: Identity): void {
    const where = `${crafted.method} ${crafted.operation.path}`;
    const known = this.#found.get(`${what} ${where}`);
    if (known) return void (known.times += 1);
    this.#found.set(`${what} ${where}`, {
      what,
      where,
      times: 1,
      first: `request ${index} by ${identity.name}, bent: ${crafted.bent.join(' and ') || 'nothing'}`,
      curl: this.#curl(index, url, crafted, identity),
    });
  }

  /** What concerns no single request. */
  tell(what: string, first = ''): void {
    this.#found.set(what, { what, where: 'the server', times: 1, first, curl: '' });
  }

  #curl(index: number, url: string, { method, path, headers, body }: Crafted, identity: Identity): string {
    const all = Object.entries({ ...identity.headers, ...headers });
    const parts = [
      `curl -i --path-as-is -X ${method} ${quoted(url + path)}`,
      ...all.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
      ...(body ? [`--data-binary ${this.#data(index, body)}`] : []),
    ];
    return parts.join(' \\\n    ');
  }

  #data(index: number, body: Buffer): string {
    if (body.length <= longestInlineBytes && body.equals(Buffer.from(body.toString())))
      return quoted(body.toString());
    mkdirSync(this.#folder, { recursive: true });
    const file = join(this.#folder, `request-${index}.body`);
    writeFileSync(file, body);
    return quoted(`@${file}`);
  }
}

function quoted(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = [...Buffer.from(text)].map((byte) =>
    byte >= 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c
      ? String.fromCharCode(byte)
      : `\\x${byte.toString(16).padStart(2, '0')}`,
  );
  return `$'${escaped.join('')}'`;
}
