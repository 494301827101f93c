// What every command is handed: the server, the output, the terminal, the person in front of it.
import type { Readable } from 'node:stream';
import { Api, type PageEnd } from './api.js';
import { confirm } from './ask.js';
import { usualUrl, type Environment } from './config.js';
import { cliErrors } from './errors.js';
import { showList } from './list.js';
import { readLogin } from './loginFile.js';
import { Output, type Screen } from './output.js';
import type { Column } from './table.js';
import { version } from './version.js';

/** What the process brings; tests bring their own. */
export interface World {
  stdin: Readable & { isTTY?: boolean };
  stdout: Screen;
  stderr: Screen;
  environment: Environment;
  /** Ends with Ctrl-C. */
  signal: AbortSignal;
  /** While another program has the terminal, an editor or a server, a Ctrl-C is meant for that one. */
  lendTerminal: <T>(work: () => Promise<T>) => Promise<T>;
}

/** Options that every command has. */
export interface GlobalOptions {
  url?: string;
  key?: string;
  tenant?: string;
  json?: boolean;
  quiet?: boolean;
  color?: 'always' | 'never' | 'auto';
}

/** And those that many have. */
export interface ChangeOptions {
  yes?: boolean;
  dryRun?: boolean;
}

export interface Context extends World {
  api: Api;
  out: Output;
  /** Where the address came from, for `doctor`. */
  source: 'option' | 'environment' | 'login' | 'usual';
  /** Asks on a terminal; throws unless the answer is yes. */
  confirm: (question: string) => Promise<void>;
  /** A list as a table, or as lines of JSON. */
  show: <Row>(columns: readonly Column<Row>[], rows: AsyncGenerator<Row, PageEnd | void>) => Promise<void>;
}

export async function makeContext(world: World, options: GlobalOptions & ChangeOptions): Promise<Context> {
  const { environment, signal } = world;
  const out = new Output({
    ...world,
    json: options.json ?? false,
    quiet: options.quiet ?? false,
    colour: options.color ?? environment.colour,
    columns: environment.columns,
  });
  const login = await readLogin(environment.loginFile);
  const { url, source } = addressOf(options, environment, login?.url);
  // A kept key goes nowhere but to the address that it was kept with.
  const isKept = login !== undefined && trimmed(url) === trimmed(login.url);
  const key = options.key ?? environment.key ?? (isKept ? login.key : undefined);
  const tenant = options.tenant ?? environment.tenant ?? (isKept ? login.tenant : undefined);
  const api = new Api({ url, key, tenant, version, signal });
  return {
    ...world,
    api,
    out,
    source,
    confirm: (question) => confirm({ stdin: world.stdin, out, signal, yes: options.yes ?? false }, question),
    show: (columns, rows) => showList(out, columns, rows),
  };
}

function addressOf(
  options: GlobalOptions,
  environment: Environment,
  kept: string | undefined,
): { url: string; source: Context['source'] } {
  if (options.url !== undefined) return { url: checked(options.url, '--url'), source: 'option' };
  if (environment.url !== undefined)
    return { url: checked(environment.url, 'SLUICE_URL'), source: 'environment' };
  return kept === undefined ? { url: usualUrl, source: 'usual' } : { url: kept, source: 'login' };
}

/** An address with a scheme; what begins like `host:port` gets the usual one. */
export function checked(text: string, from: string): string {
  const whole = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(whole) || !/^https?:$/.test(new URL(whole).protocol))
    throw cliErrors.USAGE({
      reason: `${from} must be an address like https://files.example.com, not "${text}"`,
    });
  const { username, password } = new URL(whole);
  if (username !== '' || password !== '')
    throw cliErrors.USAGE({ reason: `${from} must not hold a user or a password; use --key or SLUICE_KEY` });
  return whole;
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, '');
}
