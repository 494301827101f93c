// `sluice status`: is everything well? One screen; the exit code says it too.
import { crossedOf, readAlerts } from './alertsCommand.js';
import { declare, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { ApiError, cliErrors } from './errors.js';
import { attentionText, summaryOf } from './overview.js';
import type { Overview } from './replies.js';
import { queueColumns } from './queueCommands.js';
import { safeLine } from './sanitise.js';

/** What /readyz says: a word for each part. */
export type Ready = Record<string, string>;

export function statusCommand(program: SluiceCommand): void {
  declare(program, 'status', 'Is everything well? Parts, queues, Redis, and what needs attention.')
    .example('status', 'one screen')
    .example('status --json | jq .ready', 'for a program')
    .example('status --quiet && deploy', 'the exit code is 1 when a part is down')
    .runs(async (context) => {
      const { api, out } = context;
      const ready = await readReady(context);
      const overview = await ifAllowed(() => api.get<Overview>('/v1/overview'));
      const alerts = await ifAllowed(() => readAlerts(api));
      out.one({ url: api.url, ready, ...(overview && { overview }), ...(alerts && { alerts }) }, () =>
        print(context, ready, overview, crossedOf(alerts ?? [])),
      );
      if (ready['status'] !== 'ok')
        throw cliErrors.UNHEALTHY({ what: `not ready: ${downParts(ready).join(', ')}` });
    });
}

export async function readReady({ api }: Context): Promise<Ready> {
  const response = await fetchReady(api);
  const ready = (await response.json().catch(() => undefined)) as Ready | undefined;
  if (typeof ready?.['status'] !== 'string') throw cliErrors.NO_SLUICE({ url: api.url });
  return ready;
}

/** 503 is an answer here, not a failure. */
async function fetchReady(api: Context['api']): Promise<Response> {
  try {
    return await fetch(api.address('/readyz'), {
      headers: api.headers(),
      signal: AbortSignal.timeout(10_000),
    });
  } catch (error) {
    await api.get('/healthz');
    throw error;
  }
}

/** A key of one tenant may not see the installation; what it may see is shown. */
async function ifAllowed<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    const isUnseen = error instanceof ApiError && [401, 403, 404, 503].includes(error.status);
    if (isUnseen) return undefined;
    throw error;
  }
}

function downParts(ready: Ready): string[] {
  return Object.entries(ready)
    .filter(([name, word]) => name !== 'status' && word !== 'ok')
    .map(([name, word]) => `${name} (${word})`);
}

function print({ api, out }: Context, ready: Ready, overview: Overview | undefined, crossed: string[]): void {
  const { colour } = out;
  const isReady = ready['status'] === 'ok';
  const word = isReady ? colour.green('ready') : colour.red(safeLine(ready['status'] ?? 'unready'));
  out.line(`${colour.bold(safeLine(api.url))}  ${word}`);
  for (const part of downParts(ready)) out.line(`  ${colour.red('✗')} ${safeLine(part)}`);
  if (!overview) return;
  out.pairs(summaryOf(overview));
  if (overview.queues && overview.queues.length > 0) {
    out.line();
    out.table(queueColumns, overview.queues);
  }
  const attention = (overview.attention ?? []).map(attentionText);
  if (attention.length + crossed.length === 0) return;
  out.heading('Needs attention');
  for (const text of [...attention, ...crossed]) out.line(`  ${colour.yellow('!')} ${safeLine(text)}`);
}
