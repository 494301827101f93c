/** Packages: who may depend on whom, and what each of them owes its reader. */
import assert from 'node:assert/strict';
import { builtinModules } from 'node:module';
import { posix } from 'node:path';
import { test } from 'node:test';
import { files, has, read, readJson, withoutComments, workspaces, type Workspace } from './repository.js';

/** Dependencies point down: apps → flow packages → redis, store, records → base. */
const FOUNDATION = 0;
const GROUND = new Map([
  ['@sluice/base', FOUNDATION],
  ['@sluice/redis', 1],
  ['@sluice/store', 1],
  ['@sluice/postgres', 1],
  ['@sluice/records', 1],
]);
const FLOW = 2;
const PROGRAM = 3;

function layerOf({ folder, json }: Workspace): number {
  return folder.startsWith('packages/') ? (GROUND.get(json.name) ?? FLOW) : PROGRAM;
}

function own(dependencies: Record<string, string> | undefined): string[] {
  return Object.keys(dependencies ?? {}).filter((name) => name.startsWith('@sluice/'));
}

test('dependencies between packages point one way', () => {
  const all = workspaces();
  for (const from of all) {
    for (const name of own(from.json.dependencies)) {
      const to = all.find(({ json }) => json.name === name);
      assert.ok(to, `${from.folder} depends on ${name}, which does not exist`);
      const [above, below] = [layerOf(from), layerOf(to)];
      // Flow packages may build on each other; the compiler's project references forbid circles.
      const allowed = below < above || (below === FLOW && above === FLOW);
      assert.ok(allowed, `${from.json.name} must not depend on ${name}`);
    }
  }
});

test('the testbed is for tests: a devDependency, never imported by a package', () => {
  for (const { folder, json } of workspaces()) {
    const published = { ...json.dependencies, ...json.peerDependencies };
    assert.equal(published['@sluice/testbed'], undefined, `${folder}: testbed is not for production`);
    if (!folder.startsWith('packages/') && !folder.startsWith('apps/')) continue;
    for (const file of sourcesOf(folder, 'src')) {
      assert.ok(!importsOf(file).includes('@sluice/testbed'), `${file} imports the testbed`);
    }
  }
});

test('every import is declared in the package that makes it', () => {
  for (const { folder, json } of workspaces()) {
    const declared = new Set([json.name, ...Object.keys({ ...json.dependencies, ...json.peerDependencies })]);
    const forTests = new Set([...declared, ...Object.keys(json.devDependencies ?? {})]);
    // The testbed may drive bench and chaos, which are programs of this repository only.
    const forSources = json.private ? forTests : declared;
    for (const part of ['src', 'test'] as const) {
      for (const file of sourcesOf(folder, part)) {
        for (const name of importsOf(file)) {
          assert.ok((part === 'src' ? forSources : forTests).has(name), `${file} imports ${name} undeclared`);
        }
      }
    }
  }
});

test('what an app loads is a dependency of it; from a devDependency it takes types at most', () => {
  for (const { folder, json } of workspaces().filter((workspace) => workspace.folder.startsWith('apps/'))) {
    for (const file of sourcesOf(folder, 'src')) {
      for (const name of importsOf(file, 'code'))
        assert.ok(Object.hasOwn(json.dependencies ?? {}, name), `${file} loads ${name}`);
    }
  }
});

test('project references follow the dependencies', () => {
  const all = workspaces();
  const { references } = readJson('tsconfig.json') as { references: { path: string }[] };
  assert.deepEqual(references.map(({ path }) => path).sort(), all.map(({ folder }) => folder).sort());
  for (const { folder, json } of all) {
    const config = readJson(`${folder}/tsconfig.json`) as { references?: { path: string }[] };
    const referenced = (config.references ?? []).map(({ path }) => posix.join(folder, path));
    const names = [...own(json.dependencies), ...own(json.devDependencies)];
    const wanted = all
      .filter((workspace) => names.includes(workspace.json.name))
      .map((workspace) => workspace.folder);
    assert.deepEqual(referenced.sort(), wanted.sort(), `${folder}/tsconfig.json`);
  }
});

test('every package says what it is, in its package.json and its README', () => {
  const { version } = readJson('package.json') as { version: string };
  for (const { folder, json } of workspaces()) {
    assert.ok(has(`${folder}/README.md`), `${folder} has no README.md`);
    assert.equal(json.license, 'Apache-2.0', folder);
    assert.equal(json.type, 'module', folder);
    assert.equal(json.engines?.['node'], '>=20', folder);
    assert.equal(json.version, version, folder);
    for (const name of [...own(json.dependencies), ...own(json.devDependencies)]) {
      assert.equal({ ...json.dependencies, ...json.devDependencies }[name], version, `${folder}: ${name}`);
    }
  }
});

test('src/index.ts lists public names and nothing else', () => {
  const oneExport = /export\s+(?:type\s+)?(?:\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s+from\s+'[^']+';\s*/y;
  for (const { folder } of workspaces()) {
    const file = `${folder}/src/index.ts`;
    if (!has(file)) continue;
    const code = withoutComments(read(file)).trim();
    oneExport.lastIndex = 0;
    while (oneExport.lastIndex < code.length) {
      const at = oneExport.lastIndex;
      assert.ok(oneExport.test(code), `${file} holds more than exports: ${code.slice(at, at + 60)}`);
    }
  }
});

test('the lockfile names no registry and nothing that nobody asked for', () => {
  interface Locked {
    resolved?: string;
    extraneous?: boolean;
  }
  const { packages } = readJson('package-lock.json') as { packages: Record<string, Locked> };
  for (const [path, { resolved, extraneous }] of Object.entries(packages)) {
    assert.ok(!resolved?.includes('://'), `${path}: ${resolved}`);
    assert.ok(!extraneous, `${path} is extraneous`);
  }
});

function sourcesOf(folder: string, part: 'src' | 'test'): string[] {
  return files().filter((file) => file.startsWith(`${folder}/${part}/`) && /\.(ts|tsx|mts)$/.test(file));
}

const anyImport = /^\s*(?:import|export)\b[^;'"`]*?from\s+'([^']+)'/gm;
const importOfCode = /^\s*(?:import|export)\b(?!\s+type\b)[^;'"`]*?from\s+'([^']+)'/gm;

/** Names of the packages a file imports; relative files and Node's own modules left out. */
function importsOf(file: string, what: 'anything' | 'code' = 'anything'): string[] {
  const pattern = what === 'code' ? importOfCode : anyImport;
  const specifiers = [...withoutComments(read(file)).matchAll(pattern)];
  const names = specifiers.map(([, specifier]) => specifier!).filter((specifier) => !/^[./]/.test(specifier));
  return names
    .filter((name) => !name.startsWith('node:') && !builtinModules.includes(name))
    .map((name) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/'),
    );
}
