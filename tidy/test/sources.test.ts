/** Source files: how they are named, how they open, and what none of them may contain. */
import assert from 'node:assert/strict';
import { accessSync, constants } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { test } from 'node:test';
import { files, has, read, root, withoutComments } from './repository.js';

const isCode = (file: string): boolean => /\.(ts|tsx|mts|mjs|js|lua)$/.test(file);

test('no file and no folder is a drawer for everything', () => {
  const drawers = /^(utils?|common|helpers?|misc|shared|lib)$/;
  for (const file of files()) {
    for (const name of file.split('/')) {
      assert.doesNotMatch(name.replace(/\..*$/, ''), drawers, `${file}: name it for what it does`);
    }
  }
});

test('every source file opens with what it is for', () => {
  for (const file of files().filter(isCode)) {
    if (!/(^|\/)(src|lua|scripts)\//.test(file) || basename(file) === 'index.ts') continue;
    const opening = read(file).replace(/^#!.*\n/, '');
    const comment = file.endsWith('.lua') ? /^--/ : /^\/[/*]/;
    assert.ok(comment.test(opening), `${file} opens without a comment`);
  }
});

test('only a configuration file reads the environment', () => {
  const allowed =
    /^((apps\/[^/]+|demo)\/src\/config\.ts|(scripts|bench|chaos|fuzz|tidy|packages\/testbed)\/.*|.*\/test\/.*)$/;
  for (const file of files().filter(isCode)) {
    if (allowed.test(file)) continue;
    assert.ok(!withoutComments(read(file)).includes('process.env'), `${file} reads process.env`);
  }
});

test('nothing is left for later and nothing is switched off', () => {
  // Written with a dot inside, so that this file does not find itself.
  const words = ['TO·DO', 'FIX·ME', 'XX·X', 'test.on·ly(', 'it.on·ly(', 'describe.on·ly(', 'debug·ger;'];
  const forbidden = [...words, '@ts-ig·nore', '@ts-no·check'].map((word) => word.replace('·', ''));
  for (const file of textFiles()) {
    const text = read(file);
    for (const word of forbidden) assert.ok(!text.includes(word), `${file} contains ${word}`);
  }
});

test('no file names a place on somebody’s machine', () => {
  const places = /(?<![\w.])\/(home|root|Users|work|workspace)\/[\w.-]+/;
  for (const file of textFiles()) {
    const found = places.exec(read(file));
    assert.equal(found?.[0], undefined, `${file} contains a machine's path`);
  }
});

test('links between documents lead somewhere', () => {
  for (const file of files().filter((name) => name.endsWith('.md'))) {
    const prose = read(file)
      .replace(/```[\s\S]*?```/g, '')
      .replace(/`[^`\n]*`/g, '');
    for (const [, link] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(\w+:|#)/.test(link!)) continue;
      const target = posix.join(dirname(file), link!.replace(/#.*$/, ''));
      assert.ok(has(target), `${file} links to ${target}, which does not exist`);
    }
  }
});

test('.ci/run can be run and runs the tests', () => {
  accessSync(join(root, '.ci/run'), constants.X_OK);
  assert.match(read('.ci/run'), /npm test/);
});

function textFiles(): string[] {
  return files().filter(
    (file) => /\.(ts|tsx|mts|mjs|js|lua|md|json|sh|yml)$/.test(file) && file !== 'package-lock.json',
  );
}
