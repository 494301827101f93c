// `sluice status`: is everything well? One screen; the exit code says it too.
import { readAlerts } from './alertsCommand.js';
import { declare, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { ApiError, cliErrors } from './errors.js';
import { attentionText, summaryOf } from './overview.js';
import type { Overview } from './replies.js';
import { queueColumns } from './queueCommands.js';
import { safeLine } from './sanitise.js';

/** What /readyz says: a word for each part. */
export type Ready = Record<string, string>;

/** A server that looks at its parts for longer is not well. */
const readyDeadlineMs = 10_000;

export function statusCommand(program: SluiceCommand): void {
  declare(program, 'status', 'Is everything well? Parts, queues, Redis, and what needs attention.')
    .example('status', 'one screen')
    .example('status --json | jq .ready', 'for a program')
    .example('status --quiet && deploy', 'the exit code is 1 when a part is down')
    .runs(async (context) => {
      const { api, out } = context;
      const ready = await readReady(context);
      const overview = await ifAllowed(() => api.get<Overview>('/v1/overview')).catch((error: unknown) => {
        // Everybody may know this much; the rest is for those with a key.
        if (!out.isJson) print(context, ready, undefined);
        throw error;
      });
      const alerts = await ifAllowed(() => readAlerts(api));
      out.one({ url: api.url, ready, ...(overview && { overview }), ...(alerts && { alerts }) }, () =>
        print(context, ready, overview),
      );
      if (ready['status'] !== 'ok')
        throw cliErrors.UNHEALTHY({ what: `not ready: ${downParts(ready).join(', ')}` });
    });
}

/** 503 is an answer here, not a failure. */
export async function readReady({ api, signal }: Context): Promise<Ready> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(readyDeadlineMs)]);
  const reply = await api.openAny('GET', '/readyz', { signal: patience });
  const ready = (await reply.json().catch(() => undefined)) as Ready | undefined;
  if (typeof ready?.['status'] !== 'string') throw cliErrors.NO_SLUICE({ url: api.url });
  return ready;
}

/** A key of one tenant may not see the installation; what it may see is shown. */
async function ifAllowed<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    const isUnseen = error instanceof ApiError && [403, 404, 503].includes(error.status);
    if (isUnseen) return undefined;
    throw error;
  }
}

function downParts(ready: Ready): string[] {
  return Object.entries(ready)
    .filter(([name, word]) => name !== 'status' && word !== 'ok')
    .map(([name, word]) => `${name} (${word})`);
}

function print({ api, out }: Context, ready: Ready, overview: Overview | undefined): void {
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
  if (attention.length === 0) return;
  out.heading('Needs attention');
  for (const text of attention) out.line(`  ${colour.yellow('!')} ${safeLine(text)}`);
}
