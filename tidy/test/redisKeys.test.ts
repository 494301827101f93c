/**
 * The keys of a package are told three times: built in `keys.ts`, declared at the head of each Lua script with their
 * Redis type, and explained in `docs/redis-keys.md`. These tests hold the three against each other.
 *
 * A row of a table in the document begins with the key in backticks and its type: `` | `active:<session>` | HASH | ``.
 * The part every key shares (`<prefix>:{<queue>:<partition>}:`) may be left out. A placeholder ends a family's name. Each package
 * has a section of the document, because two may use the same name under different prefixes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files, has, read, root } from './repository.js';

const TYPES = ['STRING', 'LIST', 'SET', 'ZSET', 'HASH', 'STREAM'];
const DOCUMENT = 'docs/redis-keys.md';
/** Packages with keys, and the headings of their sections. */
const PACKAGES = {
  queue: 'The queue',
  upload: 'Uploads',
  events: 'Events',
  cache: 'The cache',
  inspect: 'History',
  operations: 'Operations',
  webhooks: 'Webhooks',
  alerts: 'Alerts',
};
type Package = keyof typeof PACKAGES;
const packages = Object.keys(PACKAGES) as Package[];

test('every Lua script has a header: flags, KEYS, ARGV, Returns', () => {
  const scripts = packages.flatMap(luaFiles);
  for (const file of scripts) {
    const flags = /^#!lua( flags=[a-z-]+(,[a-z-]+)*)?\n/;
    assert.ok(flags.test(read(file)), `${file} does not begin with #!lua`);
    for (const word of [/^-- KEYS\b/m, /^-- ARGV\b/m, /^-- Returns\b/m]) {
      assert.ok(word.test(headOf(file)), `${file}: its head lacks ${String(word)}`);
    }
  }
  assert.ok(packages.every((name) => luaFiles(name).length > 0));
});

test('scripts declare only keys that keys.ts builds, each with one type', async () => {
  for (const owner of packages) {
    const names = await keyNames(owner);
    const types = new Map<string, string>();
    for (const { file, name, type } of declaredKeys(owner)) {
      assert.ok(Object.hasOwn(names, name), `${file} declares the key ${name}, which no keys.ts builds`);
      assert.ok(TYPES.includes(type), `${file}: ${type} is not a Redis type`);
      assert.equal(types.get(name) ?? type, type, `${file}: ${name} has another type elsewhere`);
      types.set(name, type);
    }
  }
});

test('docs/redis-keys.md names every key with its type, and no other', { skip: !has(DOCUMENT) }, async () => {
  for (const owner of packages) {
    const rows = documentedKeys(owner);
    const names = await keyNames(owner);
    const declared = declaredKeys(owner);
    const met = new Set<string>();
    for (const [name, suffix] of Object.entries(names)) {
      const row = rows.find(({ key }) => key === suffix) ?? rows.find(({ key }) => isFamilyOf(key, suffix));
      assert.ok(row, `${DOCUMENT} does not mention ${suffix} of ${owner}`);
      met.add(row.key);
      const type = declared.find((key) => key.name === name)?.type ?? row.type;
      assert.equal(row.type, type, `${DOCUMENT}: the type of ${suffix} of ${owner}`);
    }
    for (const { key } of rows) assert.ok(met.has(key), `${DOCUMENT} mentions ${key}, which nothing builds`);
  }
});

/** Key names and what follows the shared part: `{ active: 'active:', … }`. */
async function keyNames(owner: Package): Promise<Record<string, string>> {
  const module = (await import(`${root}/packages/${owner}/dist/src/keys.js`)) as {
    keyNames: Record<string, string>;
    sharedKeyNames?: Record<string, string>;
  };
  return { ...module.keyNames, ...module.sharedKeyNames };
}

function isFamilyOf(family: string, suffix: string): boolean {
  return family.endsWith(':') && suffix.startsWith(family);
}

function documentedKeys(owner: Package): { key: string; type: string }[] {
  const section = read(DOCUMENT)
    .split(/^## /m)
    .find((text) => text.startsWith(`${PACKAGES[owner]}\n`));
  assert.ok(section, `${DOCUMENT} has no section "${PACKAGES[owner]}"`);
  const rows = section.matchAll(/^\|\s*`([^`]+)`\s*\|\s*`?(\w+)`?\s*\|/gm);
  return [...rows].map(([, code, type]) => ({
    key: code!.replace(/^.*\{[^}]*\}:/, '').replace(/<.*$/, ''),
    type: type!.toUpperCase(),
  }));
}

function declaredKeys(owner: Package): { file: string; name: string; type: string }[] {
  return luaFiles(owner).flatMap((file) =>
    [...headOf(file).matchAll(/^-- KEYS\s+(.*)$/gm)].flatMap(([, list]) => {
      if (list!.trim() === 'none') return [];
      return list!.split(',').map((item) => {
        const [name = '', type = ''] = item.trim().split(/\s+/);
        return { file, name, type };
      });
    }),
  );
}

/** The scripts. A prelude is no script of its own: the loader puts it in front of those that need it. */
function luaFiles(owner: Package): string[] {
  const isPrelude = (file: string): boolean => /^-- \w+\.lua \(prelude\b/.test(read(file));
  const all = files().filter((file) => file.startsWith(`packages/${owner}/lua/`) && file.endsWith('.lua'));
  return all.filter((file) => !isPrelude(file));
}

/** The comment a script opens with. */
function headOf(file: string): string {
  return /^#!.*\n((?:--.*\n)*)/.exec(read(file))?.[1] ?? '';
}
