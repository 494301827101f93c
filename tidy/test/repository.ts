/** The repository as data: its workspaces and its files, without what is generated or installed. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** This file runs from `tidy/dist/test/`. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));

const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.sluice', 'coverage']);

export interface PackageJson {
  name: string;
  version: string;
  private?: boolean;
  license?: string;
  type?: string;
  engines?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

export interface Workspace {
  /** Relative to the root, with forward slashes. */
  folder: string;
  json: PackageJson;
}

export function workspaces(): Workspace[] {
  const { workspaces: patterns } = readJson('package.json') as { workspaces: string[] };
  const folders = patterns.flatMap((pattern) => {
    if (!pattern.endsWith('/*')) return [pattern];
    const parent = pattern.slice(0, -2);
    return readdirSync(join(root, parent)).map((name) => `${parent}/${name}`);
  });
  return folders.map((folder) => ({ folder, json: readJson(`${folder}/package.json`) as PackageJson }));
}

/** Paths of all files relative to the root, with forward slashes. */
export function files(folder = root): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !NOT_OURS.has(entry.name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? files(path) : [relative(root, path).split(sep).join('/')];
    });
}

export function has(path: string): boolean {
  return existsSync(join(root, path));
}

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function readJson(path: string): unknown {
  return JSON.parse(read(path));
}

/** Code without its comments. Strings that look like comments are cut too, which no check here minds. */
export function withoutComments(code: string): string {
  return code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}
