// `sluice login` and `sluice logout`: the address and the key for all further commands, in a file that only its owner can read.
import { Api } from './api.js';
import { askLine } from './ask.js';
import { declare, type SluiceCommand } from './command.js';
import { checked, type Context, type GlobalOptions } from './context.js';
import { ApiError, cliErrors } from './errors.js';
import { removeLogin, writeLogin } from './loginFile.js';
import { textFrom } from './stdin.js';
import { version } from './version.js';

export interface Session {
  tenant: string;
  role: string;
  installation?: boolean;
  via?: string;
  key?: { id: string; name: string };
}

export function loginCommands(program: SluiceCommand): void {
  declare(program, 'login', 'Keep the address of a server and a key for all further commands.')
    .argument('[url]', 'where the server is')
    .example('login https://files.example.com', 'asks for the key')
    .example('sluice login https://files.example.com --key-stdin < key.txt', 'without a terminal')
    .option('--key-stdin', 'read the key from stdin')
    .runs(async (context, flags: GlobalOptions & { keyStdin?: boolean }, given?: string) => {
      const url = given === undefined ? context.api.url : checked(given, 'the address');
      const key = await keyOf(context, flags);
      const api = new Api({ url, key, tenant: flags.tenant, version, signal: context.signal });
      const session = await whoAmI(api);
      const { loginFile } = context.environment;
      const tenant = flags.tenant === undefined ? {} : { tenant: flags.tenant };
      await writeLogin(loginFile, { url: api.url, ...(key !== undefined && { key }), ...tenant });
      const who = session
        ? ` as ${session.role} of ${session.installation ? 'the installation' : session.tenant}`
        : '';
      context.out.did(
        { url: api.url, ...session, file: loginFile },
        `signed in at ${api.url}${who}; kept in ${loginFile}`,
      );
    });
  declare(program, 'logout', 'Forget the address and the key.')
    .example('logout', 'removes the file that login made')
    .runs(async ({ environment, out }) => {
      const was = await removeLogin(environment.loginFile);
      out.did({ forgotten: was }, was ? 'forgotten' : 'nobody was signed in');
    });
}

/** What the server says about whoever asks; undefined from a server that does not know the question. */
export async function whoAmI(api: Api): Promise<Session | undefined> {
  try {
    const reply = await api.get<Session & { principal?: Session }>('/v1/session');
    return reply.principal ?? reply;
  } catch (error) {
    if (
      !(error instanceof ApiError) ||
      (error.code !== 'ROUTE_NOT_FOUND' && error.code !== 'METHOD_NOT_ALLOWED')
    )
      throw error;
    // A key that opens the list of drives is a valid one.
    await api.get('/v1/drives');
    return undefined;
  }
}

async function keyOf(
  context: Context,
  flags: GlobalOptions & { keyStdin?: boolean },
): Promise<string | undefined> {
  if (flags.key !== undefined) return flags.key;
  if (flags.keyStdin) return (await textFrom('-', context.stdin)).trim() || undefined;
  if (context.environment.key !== undefined) return context.environment.key;
  if (!context.stdin.isTTY)
    throw cliErrors.USAGE({ reason: 'there is no terminal to ask for the key on; use --key-stdin' });
  const answer = await askSecret(context);
  return answer === '' ? undefined : answer;
}

/** What is typed is not shown. */
async function askSecret(context: Context): Promise<string> {
  const { stderr } = context.out;
  stderr.write('Key (empty for a server without keys): ');
  const write = stderr.write.bind(stderr);
  stderr.write = () => true;
  try {
    return (await askLine(context, '')).trim();
  } finally {
    stderr.write = write;
    stderr.write('\n');
  }
}
