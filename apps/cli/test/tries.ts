/**
 * Every command as a person types it, in an order in which each finds something to do, with what is seen then. `prepare` makes what they
 * need: jobs that wait, wait for a retry, are delayed and dead; a paused queue; an upload under way; a file.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Queue } from '@sluice/queue';
import { waitUntil } from '@sluice/testbed';
import { jsonLines } from './commandLine.js';
import type { RunningServer } from './runningServer.js';
import type { Terminal } from './terminal.js';

export interface Try {
  line: string;
  shows: RegExp[];
  /** What it needs to be true, and nobody has made true yet. */
  before?: (server: RunningServer) => Promise<void>;
  code?: number;
  /** It asks first: tried with a no, which changes nothing, and with a yes. */
  asks?: RegExp;
  /** What is typed while it runs. */
  meanwhile?: (terminal: Terminal) => Promise<void>;
  /** Only Ctrl-C ends it. */
  endless?: true;
  /** JSON, addresses and stacks are as long as they are. */
  wide?: true;
  /** A text that later tries need is the first group. */
  keeps?: [name: string, pattern: RegExp];
}

/** Jobs do what their data say. */
export const HANDLERS = `
const act = async (job) => {
  if (job.data?.die) throw new Error(job.data.die);
  await job.log('working on it');
  return { done: true };
};
export const handlers = { mail: act, images: act, held: act };
`;
/** Acts on a terminal that lets it. */
export const EVIL = 'the bank \x1b]0;owned\x07\x1b[31mdoes not answer\u202e';
const LETTERS = 9;
const PATIENCE_MS = 60_000;

/** What the lines below name. */
export interface Known {
  node: string;
  upload: string;
  worker: string;
  hook: string;
  [kept: string]: string;
}

export async function prepare(server: RunningServer, hook: string): Promise<Known> {
  const { folder, url } = server;
  await writeFile(join(folder, 'note.txt'), 'hello\n');
  await writeFile(join(folder, 'film.bin'), randomBytes(20_000_000));
  const editor = join(folder, 'edit.sh');
  await writeFile(editor, `#!/bin/sh\necho 'in the editor'; read -r answer; echo "$answer" > "$1"\n`);
  await chmod(editor, 0o755);
  const ok = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await server.run(args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  await ok('queues', 'pause', 'held');
  await ok('jobs', 'add', 'held', '{"to":"nobody"}', '--id', 'waits-1');
  await ok('jobs', 'add', 'mail', '{"to":"ada"}', '--delay', '1h', '--id', 'welcome-ada', '--group', 'new');
  // For an hour: with the usual seconds it may run just when somebody looks.
  const images = new Queue('images', { redis: server.redisUrl });
  const backoff = { type: 'fixed', delayMs: 3_600_000 } as const;
  await images.add({ die: 'no such file' }, { id: 'again-1', attempts: 20, backoff });
  await images.close();
  const letter = JSON.stringify({ die: EVIL, to: EVIL });
  for (let i = 1; i <= LETTERS; i++)
    await ok('jobs', 'add', 'mail', letter, '--attempts', '1', '--id', `dead-${i}`);
  const begun = await fetch(`${url}/v1/uploads`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ drive: 'main', path: 'under/way.bin', size: 5_000_000 }),
  });
  const { id: upload } = (await begun.json()) as { id: string };
  const [file] = JSON.parse(`[${await ok('upload', 'note.txt', '--json')}]`) as [{ nodeId: string }];
  const count = async (): Promise<number> =>
    (await ok('dead', 'ls', 'mail', '--json')).split('\n').length - 1;
  await waitUntil('they are dead', async () => (await count()) === LETTERS, { timeoutMs: PATIENCE_MS });
  const isRetried = async (): Promise<boolean> => (await ok('retry', 'ls')).includes('again-1');
  await waitUntil('one waits for a retry', isRetried, { timeoutMs: PATIENCE_MS });
  const isListed = async (): Promise<boolean> => /^held +paused +1 /m.test(await ok('queues', 'ls'));
  await waitUntil('the list of queues knows of it', isListed, { timeoutMs: PATIENCE_MS });
  const [worker] = jsonLines<{ host: string; pid: number }>(
    await server.run(['workers', 'ls', 'images', '--json']),
  );
  return { node: file.nodeId, upload, worker: `${worker!.host}:${worker!.pid}`, hook };
}

/** On a busy machine Redis answers later than the cache waits for it, and what was read is not kept. */
async function untilCached(server: RunningServer, family: string, key: string): Promise<void> {
  const isKept = async (): Promise<boolean> => {
    await server.run(['cache', 'get', family, key]);
    const { stdout } = await server.run(['cache', 'explain', family, key]);
    return stdout.startsWith('It is in Redis and fresh.\n') && /^breaker +closed$/m.test(stdout);
  };
  await waitUntil('what was read is kept', isKept, { timeoutMs: PATIENCE_MS });
}

/** Where nobody needs a key yet. */
export function openTries({ node, upload, worker, hook }: Known): ((known: Known) => Try)[] {
  const key = `'{"tenant":"default","id":"${node}"}'`;
  const tries: (Try | ((known: Known) => Try))[] = [
    { line: 'status', shows: [/ready\njobs +\d+ waiting/, /^held +paused +1 /m, /Needs attention\n +! /] },
    { line: 'queues ls', shows: [/^QUEUE +STATE +WAITING/m, /^held +paused +1 /m, /^sluice\.operations /m] },
    { line: 'queues show mail', shows: [/^dead +9$/m, /^most die of +Error: the bank/m] },
    { line: 'queues pause images', shows: [/^images: paused$/m] },
    { line: 'queues resume images', shows: [/^images: resumed$/m] },
    { line: 'queues limit mail --max-active 7', shows: [/^mail: limits changed$/m] },
    { line: `jobs add mail '{"to":"bob"}' --delay 2h --id later-1`, shows: [/^later-1$/m] },
    {
      line: 'jobs ls mail',
      shows: [/^ID +STATE/m, /^later-1 +delayed .*\{"to":"bob"\}/m, /^dead-1 +dead /m],
    },
    {
      line: 'jobs show welcome-ada',
      shows: [/^state +delayed$/m, /^Data\n +\{\n +"to": "ada"/m, /^Timeline$/m],
    },
    { line: 'jobs retry mail later-1', shows: [/^mail later-1: runs now$/m] },
    {
      line: 'jobs cancel mail welcome-ada',
      asks: /^Cancel welcome-ada of mail\? \[y\/N\]/m,
      shows: [/^mail welcome-ada: cancelled$/m],
    },
    { line: `jobs replay mail dead-1 '{"to":"eve"}'`, shows: [/^mail dead-1: runs again$/m] },
    { line: 'retry ls', shows: [/^QUEUE +ID +DUE/m, /^images +again-1 .* Error: no such file$/m] },
    { line: 'retry now images again-1', shows: [/^images again-1: runs now$/m] },
    { line: 'dead groups', shows: [/^ +8 +mail .*Error: the bank/m, /^8 dead letters in all$/m] },
    { line: 'dead ls mail', shows: [/^ID +DIED/m, /^dead-2 .* ago .*Error: the bank/m] },
    {
      line: 'dead show mail dead-2',
      shows: [/^cause +[0-9a-f]+$/m, /^Error\n +Error: the bank/m],
      wide: true,
    },
    {
      line: 'EDITOR=./edit.sh sluice dead edit mail dead-2',
      meanwhile: async (terminal) => {
        const opens = (times: number): Promise<string> =>
          terminal.until('the editor', (screen) => screen.split('in the editor').length > times);
        await opens(1);
        await terminal.enter('{"to":"eve",}');
        await terminal.until('the question', (screen) => /Edit it again\? \[y\/N\]/.test(screen));
        await terminal.enter('y');
        await opens(2);
        await terminal.enter('{"to":"eve"}');
      },
      shows: [/^warning: this is no JSON/m, /^mail dead-2: changed$/m],
    },
    { line: 'dead export mail', shows: [/^\{"id":"dead-\d"/m], wide: true },
    {
      line: 'dead replay mail dead-2',
      asks: /^Run 1 dead letter of mail again\? \[y\/N\]/m,
      shows: [/^dead\.replay mail: done, 1 of 1 \(100 %\)$/m],
    },
    {
      line: 'dead rm mail dead-3',
      asks: /^Delete 1 dead letter of mail for good\? \[y\/N\]/m,
      shows: [/^dead\.discard mail: done, 1 of 1 \(100 %\)$/m],
    },
    {
      line: 'dead rm mail --all --per-second 1 --detach --yes',
      shows: [/^op-\S+$/m],
      keeps: ['operation', /^(op-\S+)$/m],
    },
    {
      line: 'operations ls',
      shows: [/^ID +WHAT +STATE/m, /^op-\S+ +dead\.discard mail +(active|waiting|done)/m],
    },
    ({ operation }) => ({ line: `operations show ${operation}`, shows: [/dead\.discard mail/] }),
    ({ operation }) => ({
      line: `operations cancel ${operation}`,
      asks: /^Stop the operation op-\S+\? \[y\/N\]/m,
      shows: [/: (told to stop|had ended already)/],
    }),
    ({ operation }) => ({
      line: `operations resume ${operation}`,
      code: 6,
      shows: [/^sluice: operation "op-\S+" is \w+; only one that failed can be\s+resumed/m],
    }),
    { line: 'workers ls', shows: [/^QUEUE +WORKER/m, /^images +\S+:\d+ .*\d+\/\d+ /m] },
    {
      line: `workers drain images ${worker}`,
      asks: /^Let \S+ of images end what it has and take nothing more\?\s+\[y\/N\]/m,
      shows: [/ takes nothing more$/m],
    },
    { line: `workers drain images ${worker} --undo`, shows: [/ takes jobs again$/m] },
    {
      line: `schedules set mail digest '{"kind":"digest"}' --every 15m`,
      shows: [/^mail digest: every 15 min$/m],
    },
    { line: 'schedules ls', shows: [/^mail +digest +every 15 min .* in \d/m] },
    {
      line: 'schedules rm mail digest',
      asks: /^Remove the schedule digest of mail\? \[y\/N\]/m,
      shows: [/^mail digest: removed$/m],
    },
    // Before any file is changed: the event of a change comes a second behind it, and drops once more what was read in between.
    { line: 'cache stats', shows: [/^FAMILY +HIT RATE/m, /^node /m] },
    { line: `cache get node ${key}`, shows: [/"name": "note\.txt"/], wide: true },
    {
      line: `cache explain node ${key}`,
      before: (server) => untilCached(server, 'node', key.slice(1, -1)),
      shows: [/^It is in Redis and fresh\.$/m, /^breaker +closed$/m],
      wide: true,
    },
    {
      line: `cache invalidate node --group '["node:tree","default"]'`,
      asks: /^Drop the group \["node:tree","default"\] of node\? \[y\/N\]/m,
      shows: [/^group \["node:tree","default"\] of node: dropped$/m],
    },
    {
      line: 'upload note.txt --to main/files/',
      shows: [/^main\/files\/note\.txt {2}6 B {2}[0-9a-f-]{36}$/m],
    },
    { line: 'download main/files/note.txt back.txt', shows: [/^back\.txt {2}6 B$/m] },
    { line: 'files ls main', shows: [/^ *SIZE +CHANGED +NAME/m, / note\.txt /, / files\/ /] },
    { line: 'files mkdir main/files/deep', shows: [/^main\/files\/deep is there$/m] },
    {
      line: 'files mv main/files/note.txt main/files/deep/',
      shows: [/^main\/files\/note\.txt → main\/files\/deep\/note\.txt$/m],
    },
    {
      line: 'files link main/files/deep/note.txt',
      shows: [/^http:\/\/\S+signature=\S+$/m, /^valid for 1 h$/m],
      wide: true,
    },
    {
      line: 'files rm main/files -r',
      asks: /^Delete main\/files\? \[y\/N\]/m,
      shows: [/^deleted main\/files$/m],
    },
    { line: 'drives create archive', shows: [/^the drive archive is there$/m] },
    { line: 'drives ls', shows: [/^DRIVE +CREATED +ID$/m, /^archive /m, /^main /m] },
    {
      line: 'drives rm archive',
      asks: /^Delete the drive archive\? \[y\/N\]/m,
      shows: [/^deleted the drive archive$/m],
    },
    {
      line: 'uploads ls',
      shows: [/^ID +STATE +RECEIVED/m, /^0-\w+ +pending +0 B .*main\/under\/way\.bin$/m],
    },
    {
      line: `uploads show ${upload}`,
      shows: [/^received +0 B of 4\.8 MiB \(0 %\)$/m, /^place +main\/under\/way\.bin/m],
    },
    {
      line: `uploads cancel ${upload}`,
      asks: /^Cancel 0-\w+\? \[y\/N\]/m,
      shows: [/^0-\w+: cancelled$/m],
    },
    {
      line: `trace ${node}`,
      shows: [/^├─ upload +0-\w+ +completed\n│ +2\S+ \S+ +note\.txt$/m, /^[├└]─ file +\S+ +active$/m],
    },
    {
      line: 'events tail',
      shows: [/^2\S+ \S+ +repository\.documents\.created +main\/files\/note\.txt/m],
      endless: true,
    },
    { line: 'redis health', shows: [/^memory +\S+ \S+/m, /^when full +noeviction$/m] },
    { line: 'alerts', shows: [/^ALERT +STATE/m, /^deadLetters +ok /m] },
    { line: 'doctor', shows: [/^✓ +reachable /m, /^✓ +eviction +noeviction$/m, /^What to do$/m] },
    {
      line: 'top --every 1s',
      shows: [],
      meanwhile: async (terminal) => {
        await terminal.until('the queues', (screen) => /^held +paused +1 /m.test(screen));
        await terminal.press('s');
        await terminal.until('another order', (screen) => screen.includes('sort (waiting)'));
        await terminal.press('q');
      },
    },
    { line: 'completion bash', shows: [/^complete -F _sluice sluice$/m], wide: true },
    {
      line: 'help dead replay',
      shows: [/^Run dead letters again\.\n\nExamples:\n +sluice dead replay mail/m],
    },
    { line: 'logout', shows: [/^nobody was signed in$/m] },
    {
      line: `webhooks create ${hook} --topic jobs.dead`,
      shows: [/^whsec_\S+$/m, /it is not\s+shown again/],
      keeps: ['webhook', /(wh_[0-9a-f-]{36})/],
    },
    { line: 'webhooks ls', shows: [/^wh_\S+ +on +http/m] },
    ({ webhook }) => ({ line: `webhooks test ${webhook}`, shows: [/^wh_\S+: answered 204 after/m] }),
    ({ webhook }) => ({ line: `webhooks deliveries ${webhook}`, shows: [/ delivered +204 /] }),
    ({ webhook }) => ({ line: `webhooks set ${webhook} --off`, shows: [/^wh_\S+: changed$/m] }),
    ({ webhook }) => ({
      line: `webhooks rotate ${webhook}`,
      asks: /^Make a new secret for the webhook wh_\S+\?\s+\[y\/N\]/m,
      shows: [/^whsec_\S+$/m],
    }),
    ({ webhook }) => ({
      line: `webhooks rm ${webhook}`,
      asks: /^Remove the webhook wh_\S+\? \[y\/N\]/m,
      shows: [/^wh_\S+: removed$/m],
    }),
  ];
  return tries.map((one) => (typeof one === 'function' ? one : () => one));
}

/** With the first key the server lets nobody in without one. */
export const keyTries: ((known: Known) => Try)[] = [
  () => ({
    line: `keys create ops --for '*' --role admin`,
    shows: [/^slk_\S+$/m, /^admin of \*, id \w+\. Keep it/m],
    keeps: ['key', /^(slk_\S+)$/m],
  }),
  () => ({ line: 'keys ls', code: 4, shows: [/^sluice: \S+ wants a key$/m, /^Sign in with: sluice login/m] }),
  ({ key }) => ({
    line: 'login',
    shows: [/^signed in at \S+ as admin of the installation; kept in/m],
    meanwhile: async (terminal) => {
      await terminal.until('the question', (screen) => screen.includes('Key (empty'));
      await terminal.enter(key!);
    },
  }),
  () => ({
    line: 'keys create ci --for acme --role viewer',
    shows: [/^viewer of \S+, id \w+\./m],
    keeps: ['second', /, id (\w+)\./],
  }),
  () => ({ line: 'keys ls', shows: [/^ID +NAME +TENANT/m, /^\w+ +ops +\* +admin +valid/m] }),
  ({ second }) => ({
    line: `keys rotate ${second} --grace 1h`,
    asks: /^Give the key \w+ a new text; the old text ends in 1 h\? \[y\/N\]/m,
    shows: [/^slk_\S+$/m],
  }),
  ({ second }) => ({
    line: `keys rm ${second}`,
    asks: /^End the key \w+\? Whoever uses it is refused from then on\. \[y\/N\]/m,
    shows: [/^\w+: ended$/m],
  }),
  () => ({ line: 'audit', shows: [/^WHEN +WHO +DID/m, / ops +key\.revoke +done /] }),
  () => ({ line: 'logout', shows: [/^forgotten$/m] }),
];

/** For each command a line that changes nothing, as it is asked for in a script; `undefined` where there is none. */
export function harmlessLines({ node, upload, worker, hook }: Known): Record<string, string[] | undefined> {
  const key = JSON.stringify({ tenant: 'default', id: node });
  return {
    up: undefined,
    status: [],
    top: ['--count', '1'],
    upload: ['note.txt', '--dry-run'],
    download: ['main/note.txt', 'elsewhere.txt', '--dry-run'],
    'files ls': ['main'],
    'files rm': ['main/note.txt', '--dry-run'],
    'files mv': ['main/note.txt', 'main/other.txt', '--dry-run'],
    'files link': ['main/note.txt'],
    'files mkdir': ['main/new', '--dry-run'],
    'drives ls': [],
    'drives create': ['new', '--dry-run'],
    'drives rm': ['main', '--dry-run'],
    'uploads ls': [],
    'uploads show': [upload],
    'uploads cancel': [upload, '--dry-run'],
    trace: [node],
    'queues ls': [],
    'queues show': ['mail'],
    'queues pause': ['mail', '--dry-run'],
    'queues resume': ['mail', '--dry-run'],
    'queues limit': ['mail', '--rate', '5/s', '--dry-run'],
    'jobs ls': ['mail'],
    'jobs show': ['mail', 'dead-4'],
    'jobs add': ['mail', '{}', '--dry-run'],
    'jobs retry': ['mail', 'dead-4', '--dry-run'],
    'jobs cancel': ['mail', 'welcome-ada', '--dry-run'],
    'jobs replay': ['mail', 'dead-4', '--dry-run'],
    'retry ls': [],
    'retry now': ['images', '--all', '--dry-run'],
    'dead ls': ['mail'],
    'dead groups': [],
    'dead show': ['mail', 'dead-4'],
    'dead edit': ['mail', 'dead-4', '{}', '--dry-run'],
    'dead replay': ['mail', '--all', '--dry-run'],
    'dead rm': ['mail', '--all', '--dry-run'],
    'dead export': ['mail'],
    'operations ls': [],
    'operations show': ['op-nothing'],
    'operations cancel': ['op-nothing', '--dry-run'],
    'operations resume': ['op-nothing', '--dry-run'],
    'workers ls': [],
    'workers drain': ['images', worker, '--dry-run'],
    'schedules ls': [],
    'schedules set': ['mail', 'x', '--every', '1h', '--dry-run'],
    'schedules rm': ['mail', 'nothing', '--dry-run'],
    'cache stats': [],
    'cache get': ['node', key],
    'cache explain': ['node', key],
    'cache invalidate': ['node', key, '--dry-run'],
    'events tail': ['--no-follow'],
    'redis health': [],
    alerts: [],
    audit: [],
    'keys ls': [],
    'keys create': ['new', '--dry-run'],
    'keys rotate': ['nothing', '--dry-run'],
    'keys rm': ['nothing', '--dry-run'],
    'webhooks ls': [],
    'webhooks create': [hook, '--dry-run'],
    'webhooks set': ['nothing', '--off', '--dry-run'],
    'webhooks test': ['nothing'],
    'webhooks rotate': ['nothing', '--dry-run'],
    'webhooks deliveries': ['nothing'],
    'webhooks rm': ['nothing', '--dry-run'],
    doctor: [],
    login: ['--key-stdin'],
    logout: [],
    completion: ['bash'],
    // A text for people.
    help: undefined,
  };
}

/** What is a table, or should fit a terminal that is narrow; the first of them are looked at in a real one. */
export function narrowLines({ upload }: Known): string[] {
  return [
    ...['queues ls', 'jobs ls mail', 'dead groups', 'files ls main', 'audit', 'doctor'],
    ...['workers', 'schedules', 'uploads', 'drives', 'operations', 'keys', 'webhooks', 'retry'].map(
      (name) => `${name} ls`,
    ),
    ...['status', 'dead ls mail', 'cache stats', 'alerts', 'redis health', 'queues show mail'],
    ...['events tail --no-follow', `uploads show ${upload}`, 'jobs show welcome-ada'],
  ];
}
