// Every route of the table, tried as everybody: no one, each role of a tenant, of another tenant and of the installation, with a key,
// with the cookie of a session, with the cookie and what a page of ours sends besides, with an upload token. The handlers are replaced by
// ones that only tell that they were reached, and as whom: whoever is refused must not reach anything, nor leave a row in the audit log.
//
// What to expect is worked out here from the declarations, not by the code that enforces them. Whether the declarations themselves are
// right is for people to say: the table below is what they agreed to, and a route that is not in it fails.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import Fastify, { type FastifyInstance } from 'fastify';
import { Access, roles, type Principal, type Role } from '@sluice/access';
import { silentLogger } from '@sluice/base';
import { sampleOf } from '@sluice/testbed';
import { routes, serverOptions, type RestOptions, type Route } from '../src/index.js';
import { serve } from '../src/rest.js';

const agreed = `
POST   /v1/uploads                       operator tenant        token  -
PUT    /v1/uploads/:id/chunks/:number    operator tenant        token  -
PUT    /v1/uploads/:id/bytes             operator tenant        token  -
GET    /v1/uploads/:id                   viewer   tenant        token
HEAD   /v1/uploads/:id                   viewer   tenant        token
POST   /v1/uploads/:id/complete          operator tenant        token  -
GET    /v1/uploads/:id/events            viewer   tenant        token
DELETE /v1/uploads/:id                   operator tenant        token  upload.cancel
PUT    /v1/files/:drive/*                operator tenant        token  -
GET    /v1/files/:drive/*                viewer   tenant
HEAD   /v1/files/:drive/*                viewer   tenant
DELETE /v1/files/:drive/*                operator tenant               file.delete
GET    /v1/nodes                         viewer   tenant
POST   /v1/nodes                         operator tenant               folder.create
GET    /v1/nodes/:id                     viewer   tenant
PATCH  /v1/nodes/:id                     operator tenant               node.move
DELETE /v1/nodes/:id                     operator tenant               node.delete
GET    /v1/nodes/:id/content             viewer   tenant        link
HEAD   /v1/nodes/:id/content             viewer   tenant        link
POST   /v1/links                         operator tenant               link.create
GET    /v1/drives                        viewer   tenant
PUT    /v1/drives/:name                  admin    tenant               drive.create
GET    /v1/drives/:name                  viewer   tenant
DELETE /v1/drives/:name                  admin    tenant               drive.delete
POST   /v1/tokens                        operator tenant               token.create
GET    /v1/clocks                        viewer   installation
POST   /v1/session                       nobody   tenant               -
GET    /v1/session                       viewer   tenant
DELETE /v1/session                       viewer   tenant               -
GET    /v1/keys                          admin    tenant
POST   /v1/keys                          admin    tenant               key.create
POST   /v1/keys/:id/rotate               admin    tenant               key.rotate
DELETE /v1/keys/:id                      admin    tenant               key.revoke
GET    /v1/audit                         admin    tenant
POST   /internal/verification/result     nobody   installation  service -
GET    /v1/nodes/:id/verifications       viewer   tenant
`;

function lineOf({ method, url, needs, of, tokens, links, serviceKey, audit }: Route): string {
  const ways = [tokens && 'token', links && 'link', serviceKey && 'service'].filter(Boolean);
  return [method, url, needs, of, ...ways, ...(audit === undefined ? [] : [audit || '-'])].join(' ');
}

test('every route is declared as it was agreed, and none is missing', () => {
  const wanted = agreed
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).join(' '));
  assert.deepEqual(routes.map(lineOf).sort(), wanted.sort());
});

const tenants = ['ada', 'bob', '*'] as const;
const proofs = ['key', 'session', 'page'] as const;

interface Who {
  title: string;
  /** Undefined for whoever shows nothing, or something wrong. */
  tenant?: (typeof tenants)[number];
  role?: Role;
  proof: (typeof proofs)[number] | 'token' | 'nothing';
  headers: Record<string, string>;
}

function keyOf(tenant: string, role: Role): string {
  return `${tenant === '*' ? 'all' : tenant}-${role}-0123456789abcdef`;
}

const access = new Access({
  secret: 'only for this test',
  keys: tenants.flatMap((tenant) => roles.map((role) => ({ tenant, role, key: keyOf(tenant, role) }))),
});

async function everybody(): Promise<Who[]> {
  const all: Who[] = [
    { title: 'no one', proof: 'nothing', headers: {} },
    { title: 'a wrong key', proof: 'nothing', headers: { Authorization: 'Bearer slk_wrong' } },
    { title: 'a wrong service key', proof: 'nothing', headers: { 'X-Service-Key': 'wrong' } },
    { title: 'a wrong cookie', proof: 'nothing', headers: { cookie: 'sluice_session=e30.AAAA' } },
  ];
  for (const tenant of tenants)
    for (const role of roles) {
      const key = keyOf(tenant, role);
      const { session, csrf } = await access.signIn(key);
      const cookie = `sluice_session=${session}`;
      const page = { cookie, 'X-Sluice-CSRF': csrf, 'Sec-Fetch-Site': 'same-origin' };
      const headers = { key: { Authorization: `Bearer ${key}` }, session: { cookie }, page };
      for (const proof of proofs)
        all.push({ title: `${role} of ${tenant} by ${proof}`, tenant, role, proof, headers: headers[proof] });
    }
  const maker = await access.identify({ 'x-sluice-key': keyOf('ada', 'admin') });
  const token = access.makeToken(maker, { drive: 'main' }, new Date(Date.now() + 600_000));
  all.push({
    title: 'a token',
    tenant: 'ada',
    proof: 'token',
    headers: { Authorization: `Bearer ${token}` },
  });
  return all;
}

/** What must come of it, by what the route says. */
function expected({ needs, of, tokens, serviceKey, method }: Route, who: Who): 'reached' | 401 | 403 {
  if (serviceKey) return 401;
  if (needs === 'nobody') return 'reached';
  if (who.proof === 'nothing') return 401;
  if (who.proof === 'token') return tokens ? 'reached' : 403;
  if (of === 'installation' && who.tenant !== '*') return 403;
  if (roles.indexOf(who.role!) < roles.indexOf(needs)) return 403;
  const isSafe = method === 'GET' || method === 'HEAD';
  return who.proof === 'session' && !isSafe ? 403 : 'reached';
}

interface Table {
  url: string;
  reached: { route: Route; principal: Principal }[];
  /** Actions of the rows that were begun. */
  audited: string[];
}

const servers: FastifyInstance[] = [];
after(async () => {
  for (const server of servers) await server.close();
});

/** The table on a port, with handlers that only tell. */
async function started(table: readonly Route[]): Promise<Table> {
  const [reached, audited]: [Table['reached'], string[]] = [[], []];
  const told = table.map((route): Route => ({
    ...route,
    handle: async ({ principal }) => {
      reached.push({ route, principal });
      return { reached: true };
    },
  }));
  const audit = {
    begin: async ({ action }: { action: string }) => void audited.push(action),
    complete: async () => {},
  };
  const options = {
    ...{ access, records: { audit }, logger: silentLogger, version: '0.0.0', defaultBucket: 'disk' },
    rates: { keyPerSecond: 0, failuresPerMinute: 0 },
  };
  const server = Fastify(serverOptions);
  servers.push(server);
  // Nothing behind the routes is ever reached.
  await server.register((scope) => serve(scope, options as unknown as RestOptions, told));
  await server.listen({ host: '127.0.0.1', port: 0 });
  return { url: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`, reached, audited };
}

/** Everything that came out otherwise than the declarations say. */
async function walk(table: readonly Route[], served: readonly Route[], all: Who[]): Promise<string[]> {
  const server = await started(served);
  const wrong: string[] = [];
  for (const route of table)
    for (const who of all) {
      server.reached.length = server.audited.length = 0;
      const { status } = await ask(server.url, route, who);
      const [call] = server.reached;
      const outcome = call ? 'reached' : status;
      const wanted = expected(route, who);
      const where = `${route.method} ${route.url} as ${who.title}`;
      if (outcome !== wanted) wrong.push(`${where}: ${outcome} instead of ${wanted}`);
      if (call && route.needs !== 'nobody') {
        const tenant = who.tenant === '*' ? 'default' : who.tenant;
        if (call.principal.tenant !== tenant) wrong.push(`${where}: acts for ${call.principal.tenant}`);
        if (call.principal.installation !== (who.tenant === '*')) wrong.push(`${where}: reaches too far`);
      }
      const rows = wanted === 'reached' && route.audit ? [route.audit] : [];
      if (String(server.audited) !== String(rows)) wrong.push(`${where}: rows ${String(server.audited)}`);
    }
  return wrong;
}

async function ask(
  url: string,
  { method, url: path, body, raw }: Route,
  { headers }: Who,
): Promise<Response> {
  const place = path.replace(/:\w+/g, '1').replace('*', 'a');
  const json = body && JSON.stringify(sampleOf(body));
  const response = await fetch(url + place, {
    method,
    headers: { ...headers, ...(json !== undefined && { 'Content-Type': 'application/json' }) },
    ...(json !== undefined && { body: json }),
    ...(raw && { body: 'bytes' }),
  });
  await response.arrayBuffer();
  return response;
}

test('every route lets in whom it says and nobody else, and who is refused reaches nothing', async () => {
  assert.deepEqual(await walk(routes, routes, await everybody()), []);
});

test('a route that lets in more than it says is found, whichever it is', async () => {
  const all = await everybody();
  const some = all.filter(({ proof }) => proof === 'key' || proof === 'token' || proof === 'nothing');
  const sabotage: [title: string, spoil: (route: Route) => Route, affects: (route: Route) => boolean][] = [
    [
      'a lower role',
      (route) => (route.needs === 'nobody' ? route : { ...route, needs: 'viewer' }),
      ({ needs }) => needs === 'operator' || needs === 'admin',
    ],
    ['nobody asked', (route) => ({ ...route, needs: 'nobody' }), ({ needs }) => needs !== 'nobody'],
    [
      'tokens taken',
      (route) => ({ ...route, tokens: true }),
      // A token is an operator of its tenant: what is for admins, or of the installation, stays shut.
      ({ needs, of, tokens }) => (needs === 'viewer' || needs === 'operator') && of === 'tenant' && !tokens,
    ],
    ['no service key', (route) => ({ ...route, serviceKey: false }), ({ serviceKey }) => serviceKey === true],
    [
      'no row',
      (route) => ({ ...route, ...(route.audit && { audit: false }) }) as Route,
      ({ audit }) => Boolean(audit),
    ],
  ];
  for (const [title, spoil, affects] of sabotage) {
    const wrong = await walk(routes, routes.map(spoil), some);
    for (const route of routes.filter(affects)) {
      const where = `${route.method} ${route.url} as `;
      assert.ok(
        wrong.some((line) => line.startsWith(where)),
        `${title} was not noticed at ${where}`,
      );
    }
  }
  const ofInstallation: Route[] = routes.map((route) => ({ ...route, of: 'installation' }));
  const loosened: Route[] = routes.map((route) => ({ ...route, of: 'tenant' }));
  const wrong = await walk(ofInstallation, loosened, some);
  assert.ok(wrong.length >= routes.filter(({ needs }) => needs !== 'nobody').length);
});
