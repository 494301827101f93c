// Where `sluice login` keeps the address and the key: one file that only its owner can read. Whoever else can read it is a reason to
// stop, because a key in it is known to others.
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

export interface Login {
  url: string;
  key?: string;
  tenant?: string;
}

export async function readLogin(file: string): Promise<Login | undefined> {
  try {
    const login = JSON.parse(await readFile(file, 'utf8')) as Partial<Login>;
    return typeof login.url === 'string' ? (login as Login) : undefined;
  } catch {
    return undefined;
  }
}

/** Written beside and moved, so that nobody ever reads half of it. */
export async function writeLogin(file: string, login: Login): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify(login, undefined, 2)}\n`, { mode: 0o600 });
  await chmod(draft, 0o600);
  await rename(draft, file);
}

/** Whether there was one. */
export async function removeLogin(file: string): Promise<boolean> {
  const was = await stat(file).then(
    () => true,
    () => false,
  );
  await rm(file, { force: true });
  return was;
}

/** Undefined when there is no such file. */
export async function modeOf(file: string): Promise<number | undefined> {
  return stat(file).then(
    ({ mode }) => mode & 0o777,
    () => undefined,
  );
}
