// The page for people: everything the document has, nothing that could run, and nothing from elsewhere.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { docsPage } from '../src/docsPage.js';
import { openApi } from '../src/openapi.js';
import { routes, type Route } from '../src/index.js';
import { startApi, stopServers, type Answer, type Api } from './harness.js';

let api: Api;
let answer: Answer;

before(async () => {
  api = await startApi('file');
  answer = await api.call('GET', '/docs');
});

after(stopServers);

test('the page shows every route with an example, its parameters and its fields', async () => {
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type')!, /^text\/html/);
  const page = readable(answer.body);
  for (const route of routes.filter(({ method }) => method !== 'HEAD')) {
    const path = route.url.replace(/:(\w+)/g, '{$1}').replace('*', '{path}');
    assert.ok(page.includes(path), path);
    assert.ok(page.includes(route.summary), route.summary);
    for (const name of Object.keys({ ...route.query, ...route.headers }))
      assert.ok(page.includes(name), `${path} ${name}`);
    const fields = Object.keys(route.body?.['properties'] ?? {});
    for (const name of fields) assert.ok(page.includes(name), `${path} ${name}`);
  }
  assert.match(
    page,
    /curl -X POST "\$SLUICE_URL\/v1\/uploads" \\\n {2}-H "Authorization: Bearer \$SLUICE_KEY"/,
  );
  assert.match(page, /-d '\{"drive":"main","path":"reports\/2024.pdf"\}'/);
  assert.match(page, /curl -N "\$SLUICE_URL\/v1\/uploads\/\$ID\/events"/);
  assert.match(page, /curl -T file "\$SLUICE_URL\/v1\/files\/main\/reports\/2024.pdf"/);
  assert.match(page, /-H "X-Service-Key: \$SERVICE_KEY"/);
  assert.match(page, /UNAUTHENTICATED/);
});

test('every link of the page leads to a place on it or to the document', () => {
  const page = answer.body as string;
  const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!));
  const links = [...page.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, link]) => link!);
  assert.ok(links.length > routes.length / 2);
  for (const link of links)
    assert.ok(ids.has(link.replace(/^#/, '')) || ['/docs', '/openapi.json'].includes(link), link);
});

test('nothing on the page can run or be fetched, and its policy forbids both', () => {
  const page = answer.body as string;
  assert.doesNotMatch(page, /<script|<iframe|<object|<form|javascript:|\son\w+=|\sstyle=/i);
  assert.doesNotMatch(page, /(src|href)="(https?:)?\/\//i);
  const policy = answer.headers.get('content-security-policy')!;
  assert.match(policy, /default-src 'none'.*base-uri 'none'.*form-action 'none'.*frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|script-src|\*/);
  const [, style] = /<style>([\s\S]*?)<\/style>/.exec(page)!;
  const hash = createHash('sha256').update(style!).digest('base64');
  assert.ok(policy.includes(`style-src 'sha256-${hash}'`));
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
});

test('what a declaration says is shown, not run', () => {
  const hostile = '<img src=x onerror="alert(1)">';
  const route: Route = {
    method: 'GET',
    url: '/v1/odd/:id',
    needs: 'viewer',
    of: 'installation',
    summary: hostile,
    answers: `200 ${hostile}`,
    query: { [hostile]: { type: 'string', description: hostile } },
    handle: async () => undefined,
  };
  const page = docsPage(openApi([route], hostile));
  assert.doesNotMatch(page, /<img/);
  assert.ok(readable(page).split(hostile).length > 4);
});

/** The text of a page without its elements. */
function readable(page: string): string {
  return page
    .replace(/<[^>]+>/g, '')
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}
