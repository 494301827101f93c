/**
 * Packs the dashboard with Vite into apps/dashboard/dist, when anything that goes into it has changed. What went in is
 * remembered as a digest of contents, which is right after any checkout, and looking takes a few milliseconds.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root, run, tool } from './prepare.mjs';

/** Sources and settings of the page, and of the package that it contains. */
const INPUTS = [
  'apps/dashboard/src',
  'apps/dashboard/public',
  'apps/dashboard/index.html',
  'apps/dashboard/vite.config.js',
  'apps/dashboard/package.json',
  'packages/client/dist/src',
];

export async function packDashboard() {
  const folder = join(root, 'apps', 'dashboard');
  if (!existsSync(folder)) return 0;
  const dist = join(folder, 'dist');
  const note = join(dist, '.packed');
  const digest = digestOf(INPUTS);
  const isPacked = existsSync(join(dist, 'index.html')) && existsSync(note);
  if (isPacked && readFileSync(note, 'utf8') === digest) return 0;
  for (const old of ['index.html', 'assets']) rmSync(join(dist, old), { recursive: true, force: true });
  const args = [tool('vite', 'vite'), 'build', folder, '--logLevel', 'warn'];
  const code = await run(process.execPath, args, { title: 'packing the dashboard', quietIfShort: true });
  if (code === 0) writeFileSync(note, digest);
  return code;
}

function digestOf(inputs) {
  const hash = createHash('sha256');
  for (const file of inputs.flatMap((input) => filesIn(join(root, input))).sort()) {
    // Maps name places on this machine, and do not go into the page.
    if (file.endsWith('.map') || file.endsWith('.d.ts')) continue;
    hash
      .update(`${relative(root, file)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return hash.digest('hex');
}

function filesIn(path) {
  if (!existsSync(path)) return [];
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? filesIn(join(path, entry.name)) : [join(path, entry.name)],
    );
  } catch {
    return [path];
  }
}
