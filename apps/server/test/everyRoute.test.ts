/**
 * Every route that the server describes, tried as everybody, with real things of a tenant in its address, its query, its body and its
 * headers: whoever lacks the role is refused, and to other tenants nothing of it exists. Each tenant has one of everything, all of
 * it marked; whatever another tenant is answered is searched for the mark and for ids, and nothing may have changed afterwards.
 *
 * The requests are made from the OpenAPI document. A route with a parameter that nobody can fill fails here: it is filled in
 * tenantThings.ts.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import { Queue } from '@sluice/queue';
import { waitUntil } from '@sluice/testbed';
import {
  describedBy,
  isSafe,
  naming,
  placeOf,
  plainly,
  ROLES,
  routesOf,
  saidBy,
  type Asked,
  type Described,
  type Loose,
  type Role,
} from './describedRoutes.js';
import { newDataDir, startServer } from './serverProcess.js';
import { furnish, handle, type Ask, type Letter, type Things } from './tenantThings.js';

const UNAUDITED = [
  'DELETE /v1/session',
  'POST /internal/verification/result',
  'POST /v1/session',
  'POST /v1/uploads',
  'POST /v1/uploads/{id}/complete',
  'PUT /v1/files/{drive}/{path}',
  'PUT /v1/uploads/{id}/bytes',
  'PUT /v1/uploads/{id}/chunks/{number}',
];
/** Names of which every tenant has its own, and searches: asked for what is another's, they answer with what is one's own, or nothing. */
const NAMESAKES = new Set([
  '/v1/files/{drive}/{path}',
  '/v1/drives/{name}',
  '/v1/queues/{queue}',
  '/v1/jobs/{id}',
]);
/** What is different each time although nothing was changed, or depends on how many of all were looked through. */
const RESTLESS = new Set(['usedAt', 'scanned', 'atMs', 'trend', 'leaseLeftMs', 'requestId', 'bounds']);
const TENANTS = ['ada', 'bob', '*'] as const;
const AT_ONCE = 8;
/** Of an answer that changed, so much around the place. */
const SHOWN = 200;
const ROOT = `root-${randomBytes(16).toString('hex')}`;
const SERVICE = `service-${randomBytes(16).toString('hex')}`;
const PATIENCE = { timeoutMs: 60_000, everyMs: 50 };

type Headers = Record<string, string>;

interface Who {
  title: string;
  tenant: (typeof TENANTS)[number];
  role: Role;
  headers: Headers;
}

interface Answer {
  status: number;
  /** Head and body; of a stream what has come so far. */
  text: () => string;
  body: Loose;
  requestId: string | null;
  isStream: boolean;
  leave: () => void;
}

const people: Who[] = [];
const streams: AbortController[] = [];
// Not in a hook: what is started there ends with the first test.
const server = await startServer(newDataDir(), {
  SLUICE_ROLES: 'api,uploads,relay',
  SLUICE_KEYS: `*=${ROOT}`,
  SLUICE_SERVICE_KEYS: SERVICE,
  SLUICE_FAILURE_RATE: '0',
  SLUICE_KEY_RATE: '0',
  // What is under way stays as it is.
  SLUICE_UPLOAD_SPILL_MS: '3600000',
});
const routes = await routesOf(server);
const mail = new Queue<Letter>('mail', { redis: server.redisUrl });
await mail.work(handle).start();
for (const tenant of TENANTS)
  for (const role of ROLES) {
    const title = `${role} of ${tenant}`;
    const { key } = await asking(as(ROOT))('POST', '/v1/keys', { name: title, tenant, role });
    people.push({ title, tenant, role, headers: as(key as string) });
  }
// Deliveries stay where they are.
await asking(as(ROOT))('POST', '/v1/queues/sluice.webhooks/pause');
const bob = await furnishFor('bob');
const countedByBob = await counted(bob);
const seenByBob = await picture(bob);
const ada = await furnishFor('ada');

after(async () => {
  for (const stream of streams) stream.abort();
  await mail.close(0);
  await server.end('SIGTERM');
});

test('every thing that the walk names is there, and every route shows something to whom it is for', async () => {
  const seen: string[] = [];
  for (const route of routes.filter(isSafe)) {
    const holder = route.of === 'installation' ? as(ROOT) : admin('ada').headers;
    const requests = [...plainly(route, ada), ...naming(route, ada)];
    const answers = await Promise.all(requests.map((asked) => send(asked, holder)));
    const good = requests.filter((_, index) => answers[index]!.status === 200);
    assert.ok(good.length > 0, `${route.method} ${route.path}: ${answers[0]!.text()}`);
    for (const { path } of good) seen.push(decodeURIComponent(path));
    for (const { status, text } of answers) if (status === 200) seen.push(text());
  }
  const all = seen.join('\n');
  for (const [place, values] of Object.entries(ada.places))
    for (const value of values.flat())
      assert.ok(all.includes(value), `nobody has seen "${value}" of ${place}`);
});

test('what a tenant sees is the same before and after another one came', async () => {
  assert.deepEqual(differences(seenByBob, await picture(bob)), []);
  assert.deepEqual(await counted(bob), countedByBob);
});

test('every route that the server describes refuses whom it is not for, and nothing changes', async () => {
  assert.ok(routes.length >= 80);
  const made = await asking(admin('ada').headers)('POST', '/v1/tokens', { drive: 'main' });
  const token = as(made.token as string);
  const page = await signedIn(people.find(({ tenant, role }) => tenant === '*' && role === 'admin')!);
  const seenByAda = await picture(ada);
  const newestRow = async (): Promise<Loose> => (await asking(as(ROOT))('GET', '/v1/audit?limit=1')).items;
  const row = await newestRow();
  const unaudited: string[] = [];
  const calls: (() => Promise<void>)[] = [];
  for (const route of routes) {
    const { method, path, needs, audit } = route;
    const where = `${method} ${path}`;
    assert.ok(needs && route.of, `${where} does not say whom it is for`);
    if (isSafe(route)) assert.equal(audit, undefined, `${where} changes nothing`);
    else if (audit === false) unaudited.push(where);
    else assert.match(String(audit), /^[a-z]+(\.[a-z]+)+$/, `${where} has no name in the audit log`);
    for (const asked of plainly(route, ada))
      for (const [title, headers, status] of refusedBy(route, token, page))
        calls.push(() => refused(asked, title, headers, status));
  }
  await together(calls);
  // Signing in, and the data plane, which says by itself who stored what; nothing else.
  assert.deepEqual(unaudited.sort(), UNAUDITED);
  assert.deepEqual(await newestRow(), row, 'whoever is refused at the door leaves no row');
  assert.deepEqual(differences(seenByAda, await picture(ada)), []);
});

test('no route shows or changes anything of another tenant, whichever role of the other asks', async () => {
  const seenByAda = await picture(ada);
  const told: Told[] = [];
  // Questions first: later, what was asked for in vain is in the other's own lists. What ends things comes last.
  const ordered = routes.toSorted((one, other) => turnOf(one) - turnOf(other));
  for (const route of ordered.filter(({ needs }) => needs !== 'nobody'))
    await together(foreignCalls(route).map((call) => async () => void told.push(await call())));
  await operationsEnd(admin('bob'));
  assert.deepEqual(differences(seenByAda, await picture(ada)), []);
  // The streams tell what is new, of what is one's own.
  const tellsEvents = /^\/v1\/live(?!.*topics=uploads)/;
  const live = told.filter(({ answer, asked }) => answer.isStream && tellsEvents.test(asked.path));
  assert.ok(live.length > 0);
  await asking(admin('ada').headers)('PUT', `/v1/files/main/${ada.mark}-last.txt`, ada.mark);
  const own = await asking(admin('bob').headers)('PUT', '/v1/files/main/last.txt', 'bytes');
  const hasHeard = ({ answer }: Told): boolean => answer.text().includes(own.nodeId as string);
  await waitUntil('all streams have told', () => live.every(hasHeard), PATIENCE);
  const before = [...seenByBob.values()].join('\n');
  assert.ok(!told.some(({ asked }) => saidBy(asked).includes(ada.mark)), 'the mark itself is never said');
  const secrets = [ada.mark, ...idsIn(seenByAda).filter((id) => !before.includes(id))];
  assert.ok(secrets.length > 10);
  const saidByAll = [...new Set(told.flatMap(({ asked }) => saidBy(asked)))];
  for (const { where, asked, answer } of told) {
    // An answer may say again what was said; a stream, and what comes after changes, whatever was.
    const isQuestion = isSafe(asked) && !answer.isStream;
    const text = without(answer.text(), isQuestion ? saidBy(asked) : saidByAll, secrets);
    const found = secrets.filter((secret) => text.includes(secret));
    assert.deepEqual(found, [], `${where}: ${text}`);
  }
});

test('whom a route is for gets past its door', async () => {
  const calls = routes
    .filter(({ needs }) => needs !== 'nobody')
    .flatMap((route) => {
      const [asked] = plainly({ ...route, path: route.path.replace(/\{\w+\}/g, 'nothing') }, bob);
      const those = people.filter((who) => who.role === route.needs && mayUse(route, who));
      return those.map((who) => async () => {
        const { status } = await send(asked!, who.headers);
        const where = `${asked!.method} ${asked!.path} as ${who.title}`;
        assert.ok(![401, 403].includes(status) && status < 500, `${where}: ${status}`);
      });
    });
  await together(calls);
});

test('a route with an address, a query, a body or a header that nobody can fill is found', () => {
  const [described] = describedBy({ paths: { '/v1/things/{id}': { get: { responses: {} } } } });
  assert.throws(() => plainly(described!, ada), /nobody has said what fills \/v1\/things\/\{id\}/);
  const known = { ...described!, path: '/v1/nodes/{id}' };
  assert.equal(plainly(known, ada).length, 2);
  for (const more of [
    { queries: ['thing'] },
    { headers: ['thing'] },
    { schema: { type: 'object', properties: { thing: {} } } },
  ])
    assert.throws(() => naming({ ...known, ...more }, ada), /nobody has said what "thing" can name/);
});

interface Told {
  where: string;
  asked: Asked;
  answer: Answer;
}

/** Everything that somebody of the other tenant could ask of a route about what is ada's. */
function foreignCalls(route: Described): (() => Promise<Told>)[] {
  const place = placeOf(route.path);
  const isStrict = place !== undefined && !NAMESAKES.has(place);
  const strangers = people.filter(({ tenant }) => tenant === 'bob');
  const boss = admin('bob');
  const inHerName = { ...boss, headers: { ...boss.headers, 'X-Sluice-Tenant': 'ada' } };
  const ask = (asked: Asked, who: Who, allowed: (status: number) => boolean) => async (): Promise<Told> => {
    const answer = await send(asked, who.headers);
    const where = `${asked.method} ${asked.path} ${JSON.stringify(asked.body) ?? ''} as ${who.title}`;
    assert.ok(answer.status < 500, `${where}: ${answer.text()}`);
    if (!mayUse(route, who)) assert.equal(answer.status, 403, where);
    else assert.ok(allowed(answer.status), `${where}: ${answer.text()}`);
    return { where, asked, answer };
  };
  const isMissing = (status: number): boolean => status === 403 || status === 404;
  const isRefusal = (status: number): boolean => status >= 400;
  const isAnything = (): boolean => true;
  const plain = plainly(route, ada);
  // What is one's own in the address, and hers in the rest.
  const mixed = isStrict ? naming(route, { places: bob.places, named: ada.named }) : [];
  return [
    ...strangers.flatMap((who) => [
      ...plain.map((asked) => ask(asked, who, isStrict ? isMissing : isAnything)),
      ...naming(route, ada).map((asked) => ask(asked, who, isStrict ? isRefusal : isAnything)),
      ...mixed.map((asked) => ask(asked, who, isAnything)),
    ]),
    ...plain.map((asked) => ask(asked, inHerName, isMissing)),
  ];
}

/** Who must be refused by a route, and how. */
function refusedBy(
  route: Described,
  token: Headers,
  { cookie, csrf }: { cookie: string; csrf: string },
): [title: string, headers: Headers, status: number][] {
  if (route.serviceKey) return [['a wrong service', { 'X-Service-Key': 'wrong' }, 401]];
  if (route.needs === 'nobody') return [];
  const site = (name: string): Headers => ({ cookie, 'Sec-Fetch-Site': name });
  return [
    ['no one', {}, 401],
    ['a wrong key', as('wrong'), 401],
    ['an unknown key', as(`slk_${'0'.repeat(16)}_${'A'.repeat(43)}`), 401],
    ...(route.tokens ? [] : [['a token', token, 403] as [string, Headers, number]]),
    ...people
      .filter((who) => !mayUse(route, who))
      .map(({ title, headers }): [string, Headers, number] => [title, headers, 403]),
    ...(isSafe(route)
      ? []
      : ([
          ['a page without the token', site('same-origin'), 403],
          ['a page of somebody else', { ...site('cross-site'), 'X-Sluice-CSRF': csrf }, 403],
        ] as [string, Headers, number][])),
  ];
}

async function refused(asked: Asked, title: string, headers: Headers, wanted: number): Promise<void> {
  const { status, body, text, requestId } = await send(asked, headers);
  const where = `${asked.method} ${asked.path} as ${title}: ${text()}`;
  assert.equal(status, wanted, where);
  assert.ok(requestId, where);
  if (asked.method !== 'HEAD') assert.equal(body.error.requestId, requestId, where);
}

function mayUse({ needs, of }: Described, { tenant, role }: Who): boolean {
  if (needs === 'nobody') return true;
  return ROLES.indexOf(role) >= ROLES.indexOf(needs) && (of === 'tenant' || tenant === '*');
}

function turnOf(route: Described): number {
  if (isSafe(route)) return 0;
  return route.method === 'DELETE' || route.path.endsWith('/cancel') ? 2 : 1;
}

/** The text without the secrets that were said by whoever got it; the longest first, for one may be part of another. */
function without(text: string, said: string[], secrets: string[]): string {
  return said
    .filter((each) => secrets.some((secret) => each.includes(secret)))
    .toSorted((one, other) => other.length - one.length)
    .reduce((left, each) => left.replaceAll(each, ''), text);
}

function as(key: string): Headers {
  return { Authorization: `Bearer ${key}` };
}

function admin(tenant: string): Who {
  return people.find((who) => who.tenant === tenant && who.role === 'admin')!;
}

function furnishFor(tenant: 'ada' | 'bob'): Promise<Things> {
  const askRoot = asking(as(ROOT));
  const ask = asking(admin(tenant).headers);
  const service = (body: object) =>
    asking({ 'X-Service-Key': SERVICE })('POST', '/internal/verification/result', body);
  return furnish({ tenant, ask, askRoot, service, mail });
}

/** Requests that succeed, and their answers. */
function asking(headers: Headers): Ask {
  return async (method, path, body, more = {}) => {
    const answer = await send({ method, path, headers: more as Headers, body }, headers);
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text()}`);
    return answer.body;
  };
}

async function send(asked: Asked, who: Headers): Promise<Answer> {
  const { method, path, headers, body } = asked;
  const isText = typeof body === 'string';
  const stop = new AbortController();
  const response = await fetch(server.url + path, {
    method,
    headers: {
      ...(body !== undefined && !isText && { 'Content-Type': 'application/json' }),
      ...headers,
      ...who,
    },
    ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
    signal: stop.signal,
  });
  const type = response.headers.get('content-type') ?? '';
  const isStream = type.startsWith('text/event-stream');
  const pieces = [JSON.stringify([...response.headers])];
  if (isStream) {
    streams.push(stop);
    void gather(response, pieces);
  } else pieces.push(await response.text());
  const isJson = /json$|json;/.test(type) && pieces[1] !== '';
  return {
    status: response.status,
    requestId: response.headers.get('x-request-id'),
    text: () => pieces.join(''),
    body: isJson ? (JSON.parse(pieces[1]!) as unknown) : pieces[1],
    isStream,
    leave: () => stop.abort(),
  };
}

/** Until it is left at the end. */
async function gather(response: Response, pieces: string[]): Promise<void> {
  try {
    const decoder = new TextDecoder();
    for await (const piece of response.body!)
      pieces.push(decoder.decode(piece as Uint8Array, { stream: true }));
  } catch {
    // Aborted.
  }
}

async function together(calls: (() => Promise<unknown>)[]): Promise<void> {
  const left = calls.values();
  const next = async (): Promise<void> => {
    for (const call of left) await call();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

async function signedIn({ headers }: Who): Promise<{ cookie: string; csrf: string }> {
  const key = headers['Authorization']!.replace('Bearer ', '');
  const { body, text } = await send({ method: 'POST', path: '/v1/session', headers: {}, body: { key } }, {});
  return { cookie: /sluice_session=[^;"]+/.exec(text())![0], csrf: body.csrf as string };
}

/** What an admin of the tenant is answered when asking for everything that is the tenant's. */
async function picture(things: Things): Promise<Map<string, string>> {
  const seen = new Map<string, string>();
  const { headers } = admin(things.tenant);
  const look = async (asked: Asked): Promise<void> => {
    const { status, body, isStream, leave } = await send(asked, headers);
    if (isStream) leave();
    else
      seen.set(
        `${asked.path} ${JSON.stringify([asked.headers, asked.body])}`,
        `${status} ${calm(asked.path, body)}`,
      );
  };
  const mine = routes.filter(({ method, of }) => method === 'GET' && of === 'tenant');
  await together(
    mine.flatMap((route) =>
      [...plainly(route, things), ...naming(route, things)].map((asked) => () => look(asked)),
    ),
  );
  return seen;
}

function calm(path: string, body: unknown): string {
  // Whoever follows events goes on behind the newest, whose ever it is.
  const isPlace = (name: string): boolean => name === 'next' && path.startsWith('/v1/events');
  return JSON.stringify(body, (name, value: unknown) =>
    RESTLESS.has(name) || isPlace(name) ? undefined : value,
  );
}

/** How many letters of a tenant each operation would move. */
async function counted({ tenant }: Things): Promise<string[]> {
  const counting = routes.filter(({ schema }) => Object.hasOwn(schema?.['properties'] ?? {}, 'dryRun'));
  assert.ok(counting.length >= 2);
  const counts = counting.map(async ({ path }) => {
    const body = { choice: 'all', dryRun: true };
    return JSON.stringify(await asking(admin(tenant).headers)('POST', path.replace('{queue}', 'mail'), body));
  });
  return Promise.all(counts);
}

function differences(before: Map<string, string>, now: Map<string, string>): string[] {
  const names = new Set([...before.keys(), ...now.keys()]);
  return [...names]
    .filter((name) => before.get(name) !== now.get(name))
    .map((name) => {
      const [was = '', is = ''] = [before.get(name), now.get(name)];
      let at = 0;
      while (at < was.length && was[at] === is[at]) at++;
      at = Math.max(0, at - SHOWN / 2);
      return `${name}: ${was.slice(at, at + SHOWN)} became ${is.slice(at, at + SHOWN)}`;
    });
}

/** Whatever in these answers stands for one thing alone. */
function idsIn(seen: Map<string, string>): string[] {
  const text = [...seen.values()].join('\n');
  const found = text.matchAll(/"(?:id|\w+Id|etag|sha256|crc64|fingerprint)":"([^"]{8,})"/g);
  return [...new Set([...found].map(([, id]) => id!))];
}

async function operationsEnd({ headers }: Who): Promise<void> {
  const areOver = async (): Promise<boolean> => {
    const { items } = await asking(headers)('GET', '/v1/operations?limit=500');
    return (items as Loose[]).every(({ state }) => state !== 'running' && state !== 'waiting');
  };
  await waitUntil('what was started has ended', areOver, PATIENCE);
}
