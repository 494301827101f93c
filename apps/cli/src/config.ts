// What the environment says about this command, read once. No other file of the command line reads it.
//
// Where the server is and which key to use, in this order: --url and --key, SLUICE_URL and SLUICE_KEY, what `sluice login` kept, the
// port that every server begins with. A kept key is only ever sent to the address that it was kept with.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export interface Environment {
  url: string | undefined;
  key: string | undefined;
  tenant: string | undefined;
  /** Where names of files begin. */
  folder: string;
  /** Where `login` keeps address and key. */
  loginFile: string;
  /** Where unfinished uploads are remembered. */
  uploadsFolder: string;
  /** The data folder of a server on this machine; `doctor` looks at its permissions. */
  dataDir: string;
  /** `NO_COLOR`, `FORCE_COLOR` and a terminal that knows none. */
  colour: 'always' | 'never' | 'auto';
  columns: number | undefined;
  editor: string | undefined;
  /** What a child process gets. */
  all: NodeJS.ProcessEnv;
}

export const usualUrl = 'http://127.0.0.1:7420';

export function readEnvironment(
  env: NodeJS.ProcessEnv = process.env,
  folder: string = process.cwd(),
): Environment {
  const home = env['HOME'] || homedir();
  const configHome = env['XDG_CONFIG_HOME'] || join(home, '.config');
  const stateHome = env['XDG_STATE_HOME'] || join(home, '.local', 'state');
  const columns = Number(env['COLUMNS']);
  return {
    url: env['SLUICE_URL'] || undefined,
    key: env['SLUICE_KEY'] || undefined,
    tenant: env['SLUICE_TENANT'] || undefined,
    folder,
    loginFile: join(configHome, 'sluice', 'login.json'),
    uploadsFolder: join(stateHome, 'sluice', 'uploads'),
    dataDir: resolve(folder, env['SLUICE_DATA_DIR'] || '.sluice'),
    colour: colourWish(env),
    columns: Number.isInteger(columns) && columns > 0 ? columns : undefined,
    editor: env['VISUAL'] || env['EDITOR'] || undefined,
    all: env,
  };
}

/** https://no-color.org: any value but an empty one. FORCE_COLOR=0 is a no as well. */
function colourWish(env: NodeJS.ProcessEnv): Environment['colour'] {
  if (env['NO_COLOR']) return 'never';
  const force = env['FORCE_COLOR'];
  if (force !== undefined && force !== '') return force === '0' || force === 'false' ? 'never' : 'always';
  return env['TERM'] === 'dumb' ? 'never' : 'auto';
}
