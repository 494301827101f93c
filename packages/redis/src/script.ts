// A Lua script with named keys and arguments. The names stand once in TypeScript, where a misspelt one does not
// compile, and once at the head of the Lua file, where a reader wants them; loading compares the two. The same names
// become the script's first local variables, so that nobody counts KEYS[17].
//
// Scripts may share a prelude: a file of local functions that is put before the body. One level, no includes: a
// prelude that needed another would be a sign that the scripts want to be split differently.
//
// The head of a script looks like this:
//   #!lua flags=allow-oom
//   -- release.lua: …
//   -- KEYS jobs HASH, delayed ZSET
//   -- ARGV session, token
//   -- Returns …
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export type ScriptArgument = string | number | Buffer;

export interface Script<K extends string = string, A extends string = string> {
  name: string;
  source: string;
  sha: string;
  keys: readonly K[];
  args: readonly A[];
}

export function loadScript<const K extends string, const A extends string>(
  folder: URL,
  name: string,
  keys: readonly K[],
  args: readonly A[],
  preludes: readonly string[] = [],
  /** In place of the file's own first line: the same script under other flags. */
  firstLine?: string,
): Script<K, A> {
  const body = readFileSync(new URL(`${name}.lua`, folder), 'utf8');
  assertSameNames(name, 'KEYS', keys, body);
  assertSameNames(name, 'ARGV', args, body);
  const newline = body.indexOf('\n');
  // The shebang must stay the first line; a prelude's local functions come right after it.
  const shared = preludes.map((file) => readFileSync(new URL(`${file}.lua`, folder), 'utf8')).join('\n');
  const source = [
    firstLine ?? body.slice(0, newline),
    locals('KEYS', keys),
    locals('ARGV', args),
    shared,
    body.slice(newline + 1),
  ].join('\n');
  return { name, source, sha: createHash('sha1').update(source).digest('hex'), keys, args };
}

function locals(table: 'KEYS' | 'ARGV', names: readonly string[]): string {
  if (names.length === 0) return '';
  return `local ${names.join(', ')} = ${names.map((_, index) => `${table}[${index + 1}]`).join(', ')}`;
}

function assertSameNames(
  script: string,
  word: 'KEYS' | 'ARGV',
  names: readonly string[],
  body: string,
): void {
  const declared: string[] = [];
  for (const [, list] of body.matchAll(new RegExp(`^-- ${word} (.*)$`, 'gm'))) {
    if (list === 'none') continue;
    declared.push(...list!.split(',').map((item) => item.trim().split(/\s+/)[0]!));
  }
  if (declared.join() !== names.join()) {
    throw new Error(`${script}.lua declares ${word} [${declared}], its caller passes [${names}]`);
  }
}
