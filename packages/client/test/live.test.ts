/** Live updates in a real browser: many tabs, one stream, whatever becomes of the tab that holds it. */
import assert from 'node:assert/strict';
import { after, before, describe, test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { chromiumProblem, startBrowser, waitUntil, type Browser } from '@sluice/testbed';
import { eventReader, type ServerSentEvent } from '../src/serverSentEvents.js';
import { bundle, LiveServer } from './liveServer.js';

const MOST_GZIP_BYTES = 3 * 1024;
const TABS = 8;
const WAIT = { timeoutMs: 60_000 };

type Page = Awaited<ReturnType<Browser['newPage']>>;

test('the entry for live updates is at most 3 KB, minified and compressed', async (t) => {
  const bytes = gzipSync(await bundle(), { level: 9 }).length;
  t.diagnostic(`${bytes} bytes`);
  assert.ok(bytes <= MOST_GZIP_BYTES, `${bytes} bytes`);
});

test('events are read whole, in whatever pieces they come', () => {
  const text =
    ': a comment\n\nevent: a\nid: 1-1\ndata: {"x":1}\n\ndata: two\r\ndata:lines\r\n\r\nid: 1-2\n\nevent: none\n\n';
  const wanted: ServerSentEvent[] = [
    { event: 'a', data: '{"x":1}', id: '1-1' },
    { event: 'message', data: 'two\nlines', id: undefined },
    { event: 'message', data: '', id: '1-2' },
  ];
  for (const size of [1, 2, 3, 7, 1_000]) {
    const got: ServerSentEvent[] = [];
    const read = eventReader((event) => got.push(event));
    for (let at = 0; at < text.length; at += size) read(text.slice(at, at + size));
    assert.deepEqual(got, wanted, `in pieces of ${size}`);
  }
});

describe('in a browser', { skip: chromiumProblem() ?? false }, () => {
  let browser: Browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());

  /** A browser profile of its own: its tabs know nothing of those of other tests. */
  async function tabs(
    t: TestContext,
    server: LiveServer,
    count: number,
    query = '',
  ): Promise<{ pages: Page[]; open: () => Promise<Page> }> {
    const context = await browser.newContext();
    t.after(() => context.close());
    const open = async (): Promise<Page> => {
      const page = await context.newPage();
      await page.goto(server.url + query);
      return page;
    };
    const pages: Page[] = [];
    for (let number = 0; number < count; number++) pages.push(await open());
    await allIn(pages, 'connected');
    return { pages, open };
  }

  async function started(t: TestContext): Promise<LiveServer> {
    const server = await LiveServer.start();
    t.after(() => server.stop());
    return server;
  }

  const numbersOf = (page: Page): Promise<number[]> => page.evaluate('window.numbers');
  const stateOf = (page: Page): Promise<string> => page.evaluate('window.watch?.state');
  const leadsOf = (page: Page): Promise<boolean> => page.evaluate('window.watch?.leads === true');

  async function allIn(pages: Page[], state: string): Promise<void> {
    const arrived = async (): Promise<boolean> =>
      (await Promise.all(pages.map(stateOf))).every((each) => each === state);
    await waitUntil(`all tabs are ${state}`, arrived, WAIT);
  }

  /** Every tab has exactly these, each once. */
  async function allHave(pages: Page[], numbers: number[]): Promise<void> {
    const newest = numbers.at(-1)!;
    const arrived = async (): Promise<boolean> =>
      (await Promise.all(pages.map(numbersOf))).every((got) => got.includes(newest));
    await waitUntil(`all tabs have event ${newest}`, arrived, WAIT);
    for (const page of pages) assert.deepEqual(await numbersOf(page), numbers);
  }

  async function leaderOf(pages: Page[]): Promise<{ leader: Page; others: Page[] }> {
    const led = await Promise.all(pages.map(leadsOf));
    assert.equal(led.filter(Boolean).length, 1);
    const leader = pages[led.indexOf(true)]!;
    return { leader, others: pages.filter((page) => page !== leader) };
  }

  /** Somebody among them leads, and the server has that stream. */
  async function handedOver(server: LiveServer, pages: Page[], streamsBefore: number): Promise<void> {
    const isDone = async (): Promise<boolean> =>
      server.resumed.length > streamsBefore && (await Promise.all(pages.map(leadsOf))).includes(true);
    await waitUntil('another tab leads', isDone, WAIT);
  }

  test('eight tabs share one stream, and a ninth request is answered at once', async (t) => {
    const server = await started(t);
    const { pages, open } = await tabs(t, server, TABS);
    server.publish();
    await allHave(pages, [1]);
    assert.equal(server.streams.size, 1);
    const pong = await pages[TABS - 1]!.evaluate('fetch("/ping").then((reply) => reply.text())');
    assert.equal(pong, 'pong');
    // A newcomer gets the latest snapshot without a stream of its own.
    const late = await open();
    await waitUntil(
      'the newcomer has a snapshot',
      async () => (await late.evaluate('window.snapshot?.streams')) === 1,
      WAIT,
    );
    server.publish();
    await allHave(pages, [1, 2]);
    await allHave([late], [2]);
    assert.equal(server.resumed.length, 1);
  });

  test('a leader that closes is followed by another tab, and no event is missed or told twice', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 4);
    server.publish();
    await allHave(pages, [1]);
    let remaining = pages;
    const numbers = [1];
    for (let round = 0; round < 3; round++) {
      const { leader, others } = await leaderOf(remaining);
      const before = server.resumed.length;
      const closing = leader.close();
      numbers.push(server.publish());
      await closing;
      numbers.push(server.publish());
      await handedOver(server, others, before);
      numbers.push(server.publish());
      await allHave(others, numbers);
      remaining = others;
    }
    assert.ok(server.resumed.slice(1).every((last) => last !== undefined));
  });

  test('a leader that crashes is followed by another tab', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 3);
    server.publish();
    await allHave(pages, [1]);
    const { leader, others } = await leaderOf(pages);
    const before = server.resumed.length;
    const crashed = new Promise((resolve) => leader.once('crash', resolve));
    const session = await leader.context().newCDPSession(leader);
    session.send('Page.crash').catch(() => {});
    await crashed;
    server.publish();
    await handedOver(server, others, before);
    server.publish();
    await allHave(others, [1, 2, 3]);
  });

  // A browser without a window freezes no page; the page is told what it would be told.
  test('a leader that is about to be frozen gives the lead away, and takes it when it wakes', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 3);
    const { leader, others } = await leaderOf(pages);
    await leader.evaluate("document.dispatchEvent(new Event('freeze'))");
    await handedOver(server, others, 1);
    assert.equal(await leadsOf(leader), false);
    server.publish();
    await allHave(others, [1]);
    await leader.evaluate("document.dispatchEvent(new Event('resume'))");
    await handedOver(server, [leader], 2);
    server.publish();
    await allHave(pages, [1, 2]);
    await waitUntil('one stream is left', () => server.streams.size === 1, WAIT);
  });

  test('a leader that hangs loses the lead', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 3, '?patience=8000');
    server.publish();
    await allHave(pages, [1]);
    const { leader, others } = await leaderOf(pages);
    const before = server.resumed.length;
    leader.evaluate('for (;;);').catch(() => {});
    server.publish();
    await handedOver(server, others, before);
    server.publish();
    await allHave(others, [1, 2, 3]);
  });

  test('a restart of the server is survived: all tabs get what happened meanwhile', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 3);
    server.publish();
    await allHave(pages, [1]);
    await server.stop();
    await allIn(pages, 'reconnecting');
    server.publish();
    server.publish();
    await server.start();
    await allIn(pages, 'connected');
    await allHave(pages, [1, 2, 3]);
    assert.equal(server.streams.size, 1);
  });

  test('who is refused says so in all tabs, and tries again when told to', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 2);
    server.refusal = 503;
    for (const stream of server.streams) stream.end();
    await allIn(pages, 'reconnecting');
    server.refusal = 401;
    await allIn(pages, 'refused');
    server.refusal = undefined;
    const { others } = await leaderOf(pages);
    await others[0]!.evaluate('window.watch.retry()');
    await allIn(pages, 'connected');
    server.publish();
    await allHave(pages, [1]);
  });

  test('without Web Locks a tab has a stream of its own', async (t) => {
    const server = await started(t);
    const { pages } = await tabs(t, server, 2, '?locks=off');
    server.publish();
    await allHave(pages, [1]);
    assert.equal(server.streams.size, 2);
    await pages[0]!.evaluate('window.watch.close()');
    await waitUntil('its stream has ended', () => server.streams.size === 1, WAIT);
  });
});
