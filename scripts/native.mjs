/**
 * Compiles what is written in C, when it has changed and there is a compiler for it. Nothing depends on it but speed and memory: without
 * it everything works. What was compiled is remembered as a digest of what went in.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onPath, root, run, say } from './prepare.mjs';

/** Each `packages/<package>/native/<name>.c` becomes `packages/<package>/dist/native/<name>.node`. */
const SOURCES = [
  { of: 'store', name: 'crc64', without: 'checksums are computed by a package instead, slower' },
  { of: 'upload', name: 'trim', without: 'memory that was used stays with the process' },
];
const FLAGS = ['-O2', '-shared', '-fPIC', '-std=gnu11', '-Wall', '-Wextra'];

export async function compileNative() {
  // They are written for this processor and this C library.
  if (process.arch !== 'x64' || process.platform !== 'linux' || !onPath('cc')) return;
  for (const source of SOURCES) await compileOne(source);
}

async function compileOne({ of, name, without }) {
  const folder = join(root, 'packages', of);
  const source = join(folder, 'native', `${name}.c`);
  const headers = join(root, 'packages', 'base', 'native');
  const dist = join(folder, 'dist', 'native');
  const program = join(dist, `${name}.node`);
  const note = join(dist, `.${name}`);
  const hash = createHash('sha256').update(FLAGS.join(' '));
  for (const file of [source, join(headers, 'nodeApi.h')]) hash.update(readFileSync(file));
  const digest = hash.digest('hex');
  if (existsSync(program) && existsSync(note) && readFileSync(note, 'utf8') === digest) return;
  mkdirSync(dist, { recursive: true });
  // Beside its place first: a process that has loaded the old one goes on with it.
  const fresh = `${program}.${process.pid}`;
  const args = [...FLAGS, '-I', headers, '-o', fresh, source];
  const code = await run('cc', args, { title: `compiling ${name}.c`, quietIfShort: true });
  if (code !== 0) {
    rmSync(fresh, { force: true });
    return say(`  ${without}; everything works`);
  }
  renameSync(fresh, program);
  writeFileSync(note, digest);
}
