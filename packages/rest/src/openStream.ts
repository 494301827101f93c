// Who may hold a stream of server-sent events, how many, and for how long.
//
//   how many   each takes memory and a look in every round, so there is a bound for the process and, below it, one for everybody who could
//              take all of it: a tenant, a key with its sessions, one session, one token
//   how long   as long as they would be let in again. A stream is one request that may last for days: what was proved when it began is
//              proved again every second, from the keys in memory, and the stream of a key that was revoked ends
//
// Without keys everybody on this machine is the same one, and only the bound of the process counts.
import type { Server } from 'node:http';
import { demand, type Principal } from '@sluice/access';
import { restErrors } from './errors.js';
import { EventStream } from './eventStream.js';
import type { Admitted } from './requestLog.js';
import type { Call } from './route.js';

/** Who holds streams, and how many at most. Browsers share one among all their tabs, see @sluice/client/live. */
export const mostStreams = { process: 1_000, tenant: 500, key: 250, session: 50, token: 20 };
export type StreamCaps = Record<keyof typeof mostStreams, number>;
/** The ring of keys may be four seconds old; together that is the five seconds that are promised. */
const proveAgainMs = 1_000;

/** How many streams each holder has, by the server that they came to. */
const held = new WeakMap<Server, Map<string, number>>();

/** `onEnd` is called once, whoever ends it. Refuses before anything is answered. */
export function openStream(call: Call, onEnd: () => void): EventStream {
  const leave = takePlace(call);
  const stop = proveAgain(call, () => stream.end());
  const stream = new EventStream(call.reply, () => {
    stop();
    leave();
    onEnd();
  });
  return stream;
}

function takePlace({ reply, request, principal, parts }: Call): () => void {
  const { server } = reply.server;
  const most: StreamCaps = { ...mostStreams, ...parts.streams };
  const counts = held.get(server) ?? new Map<string, number>();
  held.set(server, counts);
  const holders = holdersOf(principal, request.headers);
  for (const [kind, name] of holders) {
    if ((counts.get(name) ?? 0) >= most[kind])
      throw restErrors.TOO_MANY_STREAMS({ limit: most[kind], of: kind });
  }
  for (const [, name] of holders) counts.set(name, (counts.get(name) ?? 0) + 1);
  return () => {
    for (const [, name] of holders) {
      const left = (counts.get(name) ?? 1) - 1;
      if (left > 0) counts.set(name, left);
      else counts.delete(name);
    }
  };
}

type Holder = [kind: keyof StreamCaps, name: string];

function holdersOf(principal: Principal, headers: Call['request']['headers']): Holder[] {
  const { via, tenant, installation, key, session } = principal;
  const all: Holder[] = [['process', 'process']];
  if (!installation) all.push(['tenant', `tenant ${tenant}`]);
  // Tokens are for one browser each, and one key makes many of them: they do not count for the key.
  if (via === 'token')
    all.push(['token', `token ${String(headers['authorization'] ?? headers['x-sluice-key'])}`]);
  else if (key) all.push(['key', `key ${key.id}`]);
  if (session) all.push(['session', `session ${session.id}`]);
  return all;
}

/** Asks again and again whether whoever holds the stream would still get it. Returns what ends that. */
function proveAgain({ parts, request, principal }: Call, refuse: () => void): () => void {
  const route = (request as Admitted).declared!;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    try {
      const now = await parts.access.identify(request.headers);
      demand(route, now);
      if (now.tenant !== principal.tenant || now.installation !== principal.installation) refuse();
    } catch {
      // Whatever the reason: who comes back is told it as the answer to a request.
      refuse();
    } finally {
      isAsking = false;
    }
  };
  const timer = setInterval(() => {
    if (!isAsking) void ask();
  }, proveAgainMs);
  return () => clearInterval(timer);
}
