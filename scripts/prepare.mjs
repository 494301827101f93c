/**
 * Brings a fresh clone to the point where compiled code can run: Node's version, npm dependencies, the programs
 * from outside npm (Redis, PostgreSQL, versitygw, Chromium), and the build. Every step looks first and works only if something is
 * missing, so that
 * the second run costs less than a second.
 *
 * Plain JavaScript without dependencies, because it runs before there are any. All it says goes to standard error:
 * standard output belongs to the command that was asked for.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packDashboard } from './dashboard.mjs';
import { compileNative } from './native.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));

const LOWEST_NODE_MAJOR = 20;
/** How often a long step says that it is still at work. */
const STILL_WORKING_MS = 10_000;
const APT_LOCK_WAIT_S = 120;

const REDIS = {
  title: 'Redis',
  programs: ['redis-server', 'valkey-server'],
  aptPackage: 'redis-server',
  services: ['redis-server'],
  lowestMajor: 7,
  hint: 'install Redis 7.0 or newer (redis-server or valkey-server on the PATH)',
};
/** The system's PostgreSQL, beside the packaged one: only tests run it, and they say that they were skipped without it. */
const POSTGRES = {
  title: 'PostgreSQL',
  programs: [],
  folder: '/usr/lib/postgresql',
  aptPackage: 'postgresql',
  services: ['postgresql'],
  optional: true,
  hint: 'the tests on the system’s own PostgreSQL need it',
};
/** The browser of the tests of pages, which say that they were skipped without it. */
const CHROMIUM = {
  title: 'Chromium',
  programs: ['chromium', 'chromium-browser', 'google-chrome'],
  aptPackage: 'chromium',
  services: [],
  optional: true,
  hint: 'the tests in a browser need it',
};
const OPENSSL = {
  title: 'OpenSSL',
  programs: ['openssl'],
  aptPackage: 'openssl',
  services: [],
  hint: 'install openssl',
};

/** The tests of the command line sit in a real terminal; without it they say that they were skipped. */
const TMUX = {
  title: 'tmux',
  programs: ['tmux'],
  aptPackage: 'tmux',
  services: [],
  optional: true,
  hint: 'the tests of the command line in a terminal need it',
};

/** For the checksum in C (`native.mjs`): used where it is, and installed only for tests and benchmarks. */
const COMPILER = {
  title: 'a C compiler',
  programs: ['cc'],
  aptPackage: 'build-essential',
  services: [],
  optional: true,
  hint: 'checksums are slower without it',
};

/** The S3 server of the tests. The testbed looks for it in the same place (`packages/testbed/src/versitygw.ts`). */
const VERSITYGW = { module: 'github.com/versity/versitygw/cmd/versitygw', version: 'v1.8.0' };

/** What a command needs before it can run; `build: false` leaves compiling to the caller. */
export async function prepare(needs = {}) {
  const { redis = false, openssl = false, postgres = false, versitygw = false } = needs;
  const { chromium = false, tmux = false, compiler = false, build = true } = needs;
  checkNode();
  await installDependencies();
  if (redis) await provide(REDIS);
  if (openssl) await provide(OPENSSL);
  if (versitygw) await provideVersitygw();
  if (postgres) await provide(POSTGRES);
  if (tmux) await provide(TMUX);
  if (chromium) await provide(CHROMIUM);
  if (compiler) await provide(COMPILER);
  if (build && (await compile()) !== 0) stopWith('the build failed');
}

/** An expected end: one line for the reader, no stack. */
export function stopWith(message) {
  say(`sluice: ${message}`);
  process.exit(1);
}

export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** Compiles what changed, and packs the dashboard if it changed; returns the exit code of what failed, or 0. */
export async function compile() {
  await compileNative();
  const title = 'compiling';
  const code = await run(process.execPath, [tool('typescript', 'tsc'), '-b'], { title, quietIfShort: true });
  return code === 0 ? packDashboard() : code;
}

/** The script behind a program of node_modules, so that no shell and no shim are needed to run it. */
export function tool(packageName, program) {
  const folder = join(root, 'node_modules', packageName);
  const { bin } = readJson(join(folder, 'package.json'));
  return join(folder, typeof bin === 'string' ? bin : bin[program]);
}

/** Runs a program in the repository with its output shown; returns its exit code. */
export async function run(
  command,
  args,
  { title, env = process.env, quietIfShort = false, stdout = 2 } = {},
) {
  const began = performance.now();
  const seconds = () => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  if (title && !quietIfShort) say(`▸ ${title}`);
  const stillWorking = setInterval(() => title && say(`  … ${title} (${seconds()})`), STILL_WORKING_MS);
  const child = spawn(command, args, { cwd: root, env, stdio: ['inherit', stdout, 2] });
  // A signal is the child's to obey; we stay until it has ended.
  const forward = (signal) => child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, forward);
  const code = await new Promise((resolve) => {
    child.once('error', (error) => {
      say(`  ${error.message}`);
      resolve(127);
    });
    child.once('exit', (exitCode, signal) => resolve(signal ? 1 : exitCode));
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, forward);
  clearInterval(stillWorking);
  if (title && !quietIfShort) say(`  ${code === 0 ? 'done' : 'failed'} after ${seconds()}`);
  return code;
}

function checkNode() {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < LOWEST_NODE_MAJOR) {
    stopWith(`Node.js ${LOWEST_NODE_MAJOR} or newer is needed, this is ${process.versions.node}`);
  }
}

async function installDependencies() {
  const missing = !existsSync(join(root, 'node_modules'));
  if (!missing && dependenciesMatchLock()) return;
  // `ci` begins from nothing and takes the lockfile literally; when something is there, bring it up to date.
  const verb = missing ? ['ci'] : ['install', '--no-save'];
  const args = [...verb, '--include=dev', '--no-audit', '--no-fund', '--loglevel=warn'];
  const npm = process.env.npm_execpath;
  const [command, first] = npm ? [process.execPath, [npm]] : ['npm', []];
  const code = await run(command, [...first, ...args], { title: 'installing npm dependencies' });
  if (code !== 0) stopWith('npm could not install the dependencies; the reason is above');
}

/** npm leaves a record of what it installed. Comparing contents, not times, is right after any checkout. */
function dependenciesMatchLock() {
  const record = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(record)) return false;
  const installed = readJson(record).packages;
  const wanted = readJson(join(root, 'package-lock.json')).packages;
  return Object.entries(wanted).every(([path, entry]) => {
    if (!path.includes('node_modules/')) return true;
    const found = installed[path];
    if (found === undefined || !existsSync(join(root, path)))
      return entry.optional === true || entry.peer === true;
    return found.version === entry.version && found.integrity === entry.integrity;
  });
}

/** Finds a program on the PATH or installs its package. */
async function provide(wanted) {
  if (!isThere(wanted)) await install(wanted);
  if (wanted.lowestMajor) checkMajor(wanted);
}

/**
 * Builds versitygw once per machine. It is built beside its place and moved there when it is whole, so that two builds at the same
 * time do no harm. Without Go the tests of S3 are skipped, which counts as failed with CI=true; everything else works.
 */
async function provideVersitygw() {
  const { module, version } = VERSITYGW;
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice', 'bin');
  const program = join(folder, `versitygw-${version}`);
  if (existsSync(program)) return;
  if (!onPath('go'))
    return say('skipped: tests of S3, because there is no Go toolchain to build versitygw with');
  mkdirSync(folder, { recursive: true });
  const bench = mkdtempSync(join(folder, 'build-'));
  try {
    const env = { ...process.env, GOBIN: bench };
    const title = `building versitygw ${version}, once (some minutes)`;
    const code = await run('go', ['install', `${module}@${version}`], { title, env });
    if (code === 0) renameSync(join(bench, 'versitygw'), program);
    else say('skipped: tests of S3, because versitygw could not be built; the reason is above');
  } finally {
    rmSync(bench, { recursive: true, force: true });
  }
}

/** On the PATH or, as Debian keeps the versions of PostgreSQL apart, in `<folder>/<version>/bin`. */
function isThere({ programs, folder }) {
  if (programs.some(onPath)) return true;
  if (folder === undefined || !existsSync(folder)) return false;
  return readdirSync(folder).some((version) => existsSync(join(folder, version, 'bin', 'postgres')));
}

/** `Redis server v=7.0.15 sha=…` */
function checkMajor({ title, programs, lowestMajor, hint }) {
  const version = spawnSync(programs.find(onPath), ['--version'], { encoding: 'utf8' });
  const [, text, major] = /v=((\d+)[\d.]*)/.exec(version.stdout ?? '') ?? [];
  if (Number(major) < lowestMajor) stopWith(`${title} ${text} is too old; ${hint}`);
}

async function install(wanted) {
  const isRoot = process.getuid?.() === 0;
  if (!isRoot || !onPath('apt-get')) {
    const how = onPath('apt-get') ? `: sudo apt-get install ${wanted.aptPackage}` : '';
    return giveUp(wanted, `${wanted.hint}${how}`);
  }
  await withoutStartingServices(async () => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const options = ['-q', '-o', `DPkg::Lock::Timeout=${APT_LOCK_WAIT_S}`];
    const apt = (title, ...args) => run('apt-get', [...options, ...args], { title, env });
    await apt('updating the package lists', 'update');
    await apt(`installing ${wanted.title}`, 'install', '-y', '--no-install-recommends', wanted.aptPackage);
    for (const service of wanted.services) await disableService(service);
  });
  if (!isThere(wanted)) giveUp(wanted, `${wanted.title} could not be installed; ${wanted.hint}`);
}

/** What is optional is missed where it is used. */
function giveUp({ optional }, message) {
  if (!optional) stopWith(message);
  say(`sluice: ${message}`);
}

/**
 * Debian starts a service when its package is installed, unless policy-rc.d forbids it. A policy that is already
 * there (in containers) is left alone: it forbids too, or somebody had a reason.
 */
async function withoutStartingServices(work) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  const remove = () => ours && rmSync(policy, { force: true });
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  process.once('exit', remove);
  try {
    await work();
  } finally {
    remove();
  }
}

/** It must not come back with the next boot either. */
async function disableService(service) {
  if (onPath('update-rc.d')) await run('update-rc.d', [service, 'disable']);
  const now = existsSync('/run/systemd/system') ? ['--now'] : [];
  if (onPath('systemctl')) await run('systemctl', ['--quiet', 'disable', ...now, `${service}.service`]);
}

export function onPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
