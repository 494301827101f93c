// What the books say: about a job, about a queue, about the last minutes; and to whom they say it.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { after, afterEach, before, test } from 'node:test';
import { ROOT_CONTEXT, SpanStatusCode, context, propagation, trace } from '@opentelemetry/api';
import type { Attributes, Context, Link, Span, SpanContext, SpanOptions } from '@opentelemetry/api';
import { isSluiceError } from '@sluice/base';
import { startProxy, startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import { readEvents } from '../src/events.js';
import { LatencyTally, decodeResult, encodeResult } from '../src/inspect.js';
import { GiveUp } from '../src/outcome.js';
import { prometheusText } from '../src/prometheus.js';
import { Queue } from '../src/queue.js';
import type { QueueOptions } from '../src/queue.js';
import { injectTrace, runInSpan } from '../src/trace.js';
import { pack } from '../src/wire.js';

let redis: RedisServer;
let tests = 0;
const opened: Queue[] = [];

before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((queue) => queue.close()));
});

function open(options: Partial<QueueOptions<unknown>> = {}): Queue {
  const queue = new Queue('jobs', { redis: redis.url, prefix: `inspect${++tests}`, ...options });
  opened.push(queue);
  return queue;
}

/** A handler that goes on only when it is told to. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

test('a job can be looked at in every state of its life', async () => {
  const queue = open({ partitions: 2 });
  const held = gate();
  assert.equal(await queue.job('nobody'), null);

  await queue.add({ n: 1 }, { id: 'a', priority: 1, group: 'g', labels: { tenant: 't' }, delayMs: 60_000 });
  const delayed = await queue.job('a');
  assert.equal(delayed?.state, 'delayed');
  assert.deepEqual(delayed.data, { n: 1 });
  assert.equal(delayed.payload?.toString(), '{"n":1}');
  assert.deepEqual([delayed.priority, delayed.group, delayed.labels], [1, 'g', { tenant: 't' }]);
  assert.ok(Math.abs(delayed.dueMs! - delayed.createdMs! - 60_000) < 1_000);

  await queue.add(Buffer.from([1, 2, 255]), { id: 'b' });
  const waiting = await queue.job('b');
  assert.equal(waiting?.state, 'waiting');
  assert.deepEqual(waiting.data, Buffer.from([1, 2, 255]));

  await queue.add('c', { id: 'c', after: [{ queue: 'jobs', id: 'a' }] });
  const blocked = await queue.job('c');
  assert.equal(blocked?.state, 'blocked');
  assert.deepEqual(blocked.waitsFor, [{ queue: 'jobs', id: 'a' }]);

  await queue.cancel('c');
  assert.equal((await queue.job('c'))?.state, 'cancelled');

  queue.work(async (job) => {
    if (job.id !== 'b') throw new GiveUp('no use');
    await job.progress({ percent: 5 });
    await job.log('begun');
    await held.opened;
    return { made: [] };
  });
  await waitUntil('the job has reported', async () => (await queue.job('b'))?.logs.length === 1);
  const active = await queue.job('b');
  assert.equal(active?.state, 'active');
  assert.deepEqual([active.progress, active.logs, active.attempt], [{ percent: 5 }, ['begun'], 1]);
  assert.match(active.token!, /^\d{16}$/);
  assert.ok(active.session);

  held.open();
  await queue.result('b');
  const done = await queue.job('b');
  assert.equal(done?.state, 'done');
  assert.deepEqual([done.result, done.logs, done.data], [{ made: [] }, ['begun'], undefined]);

  await queue.add('d', { id: 'd', attempts: 1 });
  await waitUntil('the job has died', async () => (await queue.job('d'))?.state === 'dead');
  const dead = await queue.job('d');
  assert.equal(dead?.error?.message, 'no use');
  assert.equal(dead.data, 'd');
  assert.deepEqual(
    dead.attempts.map(({ attempt, kind, message }) => [attempt, kind, message]),
    [[1, 'gave-up', 'no use']],
  );
});

test('a result comes back as it was returned, and a Uint8Array byte by byte', () => {
  for (const value of [undefined, null, 0, '', 'text', [], {}, { a: [1, { b: null }] }, 'j', 'b']) {
    assert.deepEqual(decodeResult(Buffer.from(encodeResult(value))), value);
  }
  const bytes = new Uint8Array([0, 255, 98, 106]);
  assert.deepEqual(decodeResult(Buffer.from(encodeResult(bytes))), Buffer.from(bytes));
  assert.equal(encodeResult(bytes).length, 5);
  assert.equal(encodeResult(undefined).length, 0);
  assert.equal(encodeResult(() => 1).length, 0);
});

test('whoever waits for a result gets it, or learns why there is none', async () => {
  const queue = open({ partitions: 3, keepResultMs: 60_000 });
  const held = gate();
  queue.work(async (job) => {
    if (job.data === 'die') throw new GiveUp('because');
    if (job.data === 'hold') await held.opened;
    return job.data === 'bytes' ? new Uint8Array([7, 0]) : job.data;
  });
  const [plain, bytes, dying, slow] = await queue.addMany([
    { data: { x: 1 }, group: 'elsewhere' },
    { data: 'bytes' },
    { data: 'die' },
    { data: 'hold' },
  ]);
  assert.deepEqual(await queue.result(plain!.id), { x: 1 });
  assert.deepEqual(await queue.result(bytes!.id), Buffer.from([7, 0]));
  await assert.rejects(queue.result(dying!.id), (error) => {
    return isSluiceError(error, 'JOB_DEAD') && error.message.includes('because');
  });
  await assert.rejects(queue.result(slow!.id, { timeoutMs: 60 }), (error) => {
    return isSluiceError(error, 'RESULT_TIMEOUT');
  });
  // Whoever waits may hear of it before the one who cancelled.
  const waiting = assert.rejects(queue.result(slow!.id), (error) => isSluiceError(error, 'JOB_CANCELLED'));
  await queue.cancel(slow!.id);
  await waiting;
  held.open();
  await assert.rejects(queue.result('nobody'), (error) => isSluiceError(error, 'UNKNOWN_JOB'));
});

test('every job is counted in one state', async () => {
  const queue = open({ partitions: 2 });
  const held = gate();
  await queue.limit({ perGroup: { maxActive: 1 } });
  const worker = queue.work(
    async (job) => {
      if (job.data === 'die') throw new GiveUp('no');
      await held.opened;
    },
    { concurrency: 5 },
  );
  await queue.addMany([{ data: 'die' }, { data: 'die' }]);
  await waitUntil('two have died', async () => (await queue.counts()).dead === 2);
  await queue.addMany([
    { data: 1, group: 'g' },
    { data: 2, group: 'g' },
    { data: 3, group: 'g' },
  ]);
  await waitUntil('the group is full', async () => {
    const { active, blocked } = await queue.counts();
    return active === 1 && blocked === 2;
  });
  await queue.pause();
  await queue.addMany([
    { data: 4, priority: 0 },
    { data: 5, id: 'five' },
    { data: 6, id: 'six' },
    { data: 7, delayMs: 50_000 },
    { data: 8, delayMs: 90_000 },
  ]);
  await queue.add(9, { after: [{ queue: 'jobs', id: 'five' }] });
  await queue.cancel('six');
  const counts = await queue.counts();
  const { waiting, delayed, blocked, active, dead, workers, tombstones } = counts;
  assert.deepEqual(
    { waiting, delayed, blocked, active, dead, workers, tombstones },
    { waiting: 2, delayed: 2, blocked: 3, active: 1, dead: 2, workers: 1, tombstones: 1 },
  );
  // The cancelled one is remembered; its id still stands in the list.
  assert.deepEqual([counts.done, counts.byPriority], [1, [1, 0, 0, 2, 0, 0]]);
  const inMs = counts.nextDueMs! - queue.partitions[0]!.clock.nowMs();
  assert.ok(inMs > 40_000 && inMs <= 50_000, `due in ${inMs} ms`);
  held.open();
  await worker.stop();
});

test('messages in the inbox count as waiting', async () => {
  const queue = open();
  await queue.ready();
  const { inbox } = queue.partitions[0]!.keys;
  await redis.command('RPUSH', inbox, '{"data":1}', '{"data":2}');
  const { waiting, inbox: messages } = await queue.counts();
  assert.deepEqual([waiting, messages], [2, 2]);
});

test('the oldest waiting job tells its age, also behind cancelled ones and in a group', async () => {
  const queue = open();
  assert.equal((await queue.counts()).oldestWaitingMs, 0);
  for (const options of [{ id: 'x' }, { id: 'y', group: 'g' }]) {
    await queue.add(1, options);
    await queue.add(2, { ...options, id: `${options.id}2` });
    await queue.cancel(options.id);
    await new Promise((resolve) => setTimeout(resolve, 60));
    const age = (await queue.counts()).oldestWaitingMs;
    assert.ok(age >= 50 && age < 5_000, `${age} ms`);
    await queue.cancel(`${options.id}2`);
    assert.equal((await queue.counts()).oldestWaitingMs, 0);
  }
});

test('latencies are counted in buckets that double', () => {
  const tally = new LatencyTally();
  assert.equal(tally.take(), undefined);
  tally.record(0, 0.4);
  tally.record(-5, 1);
  tally.record(3.9, 4);
  tally.record(86_400_000, 2 ** 40);
  const counts = tally.take() as (string | number)[];
  const byField = Object.fromEntries(
    counts.flatMap((item, i) => (i % 2 === 0 ? [[item, counts[i + 1]]] : [])),
  );
  assert.deepEqual(byField, { w0: 2, w2: 1, w27: 1, r0: 1, r1: 1, r3: 1, r27: 1 });
  assert.equal(tally.take(), undefined);
});

test('the minutes tell throughput and latency, summed over the partitions', async () => {
  const queue = open({ partitions: 2, attempts: 2, backoff: { type: 'fixed', delayMs: 1 } });
  const tally = new LatencyTally();
  for (let i = 0; i < 98; i++) tally.record(10, 100);
  tally.record(1_000, 3_000);
  tally.record(1_000, 70_000);
  await queue.ready();
  await queue.partitions[1]!.run('tally', { counts: pack(tally.take()!) });
  const worker = queue.work((job) => {
    if (job.data === 'die') throw new Error('no');
  });
  await queue.addMany([{ data: 1 }, { data: 2, id: 'two' }, { data: 'die' }]);
  await queue.add(3, { id: 'three', delayMs: 60_000 });
  await queue.cancel('three');
  await waitUntil('all have ended', async () => {
    const { waiting, active, delayed, dead } = await queue.counts();
    return waiting + active + delayed === 0 && dead === 1;
  });
  await worker.stop();
  const minutes = await queue.minutes(3);
  assert.equal(minutes.length, 3);
  assert.deepEqual(
    minutes.map(({ minuteMs }) => minuteMs - minutes[0]!.minuteMs),
    [0, 60_000, 120_000],
  );
  const sum = (field: 'done' | 'dead' | 'failed' | 'cancelled') =>
    minutes.reduce((n, minute) => n + minute[field], 0);
  assert.deepEqual([sum('done'), sum('dead'), sum('failed'), sum('cancelled')], [2, 1, 1, 1]);
  const { waitMs, runMs } = minutes.find((minute) => minute.waitMs !== null)!;
  assert.ok(waitMs!.p50 >= 8 && waitMs!.p50 < 16, `p50 ${waitMs!.p50}`);
  assert.ok(runMs!.p99 >= 2_048 && runMs!.p99 < 4_096 * 2, `p99 ${runMs!.p99}`);
  assert.equal((await queue.minutes(1_000_000)).length, 1_440);
});

test('Prometheus can read the figures of all queues', async () => {
  const first = open();
  const second = new Queue('other', { redis: redis.url, prefix: first.options.prefix!, partitions: 2 });
  opened.push(second);
  await first.addMany([{ data: 1 }, { data: 2 }]);
  await second.add(1, { delayMs: 60_000 });
  const { link, keys, clock } = first.partitions[0]!;
  const last = Math.floor(clock.nowMs() / 60_000) - 1;
  // The minute may end before it is read.
  for (const minute of [last, last + 1])
    await link.call('HSET', [keys.stats + minute, 'done', 7, 'w4', 10, 'r11', 10]);
  const text = await prometheusText([first, second]);
  for (const line of [
    '# TYPE sluice_queue_jobs gauge',
    'sluice_queue_jobs{queue="jobs",state="waiting"} 2',
    'sluice_queue_jobs{queue="other",state="delayed"} 1',
    'sluice_queue_workers{queue="other"} 0',
    'sluice_queue_last_minute_jobs{queue="jobs",outcome="done"} 7',
    'sluice_queue_last_minute_wait_seconds{queue="jobs",quantile="0.5"} 0.012',
  ]) {
    assert.ok(text.split('\n').includes(line), `${line}\nis missing in\n${text}`);
  }
  for (const line of text.trimEnd().split('\n')) {
    assert.match(line, /^# (HELP|TYPE) \w+ .+$|^\w+\{(\w+="[^"]*",?)+\} [0-9.e+-]+$/);
  }
  assert.match(text, /\n$/);
});

test('the event stream tells what happens, from a cursor on, and ends with its signal', async () => {
  const queue = open({ partitions: 2 });
  await queue.limit({ events: 1_000 });
  await queue.add(0, { id: 'before' });
  const ending = new AbortController();
  const seen: string[] = [];
  const cursors: string[] = [];
  const reading = (async () => {
    for await (const event of readEvents(queue, { signal: ending.signal })) {
      for (const id of event.jobIds) seen.push(`${event.type} ${id}`);
      cursors.push(event.cursor);
      assert.ok(Math.abs(event.atMs - queue.partitions[0]!.clock.nowMs()) < 60_000);
    }
  })();
  const connected = async () => {
    const clients = String(await redis.command('CLIENT', 'LIST'));
    return (
      clients.split('\n').filter((line) => line.includes('-events') && line.includes('cmd=xread')).length ===
      2
    );
  };
  await waitUntil('the reader reads', connected);
  await queue.add(1, { id: 'one' });
  await queue.add(2, { id: 'two' });
  await queue.cancel('two');
  await waitUntil('three events have come', () => seen.length === 3);
  assert.deepEqual(seen.toSorted(), ['added one', 'added two', 'cancelled two']);
  ending.abort();
  await reading;

  const rest: string[] = [];
  for await (const event of readEvents(queue, { after: cursors[0]! })) {
    rest.push(...event.jobIds.map((id) => `${event.type} ${id}`));
    if (rest.length === 2) break;
  }
  assert.deepEqual(rest.toSorted(), seen.slice(1).toSorted());
  for await (const event of readEvents(queue, { after: '0' })) {
    assert.equal(event.type, 'added');
    break;
  }
  await waitUntil(
    'no reader is left',
    async () => !String(await redis.command('CLIENT', 'LIST')).includes('-events'),
  );
});

test('a reader of events whose connection is lost goes on where it was', async () => {
  const proxy = await startProxy(redis.port);
  const queue = open({ redis: `redis://127.0.0.1:${proxy.port}` });
  await queue.limit({ events: 100 });
  await queue.add(1, { id: '1' });
  const seen: string[] = [];
  for await (const event of readEvents(queue, { after: '0' })) {
    seen.push(...event.jobIds);
    if (seen.length === 3) break;
    if (seen.length === 1) {
      proxy.cut();
      await queue.add(2, { id: '2' });
      await queue.add(3, { id: '3' });
    }
  }
  assert.deepEqual(seen, ['1', '2', '3']);
  await queue.close();
  await proxy.stop();
});

test('without OpenTelemetry nothing is written to a job, and handlers run as ever', async () => {
  const job = { id: 'j', queue: 'q', attempt: 1 };
  assert.equal(injectTrace(), undefined);
  assert.equal(
    runInSpan(job, undefined, () => 7),
    7,
  );
  assert.equal(await runInSpan(job, undefined, async () => 8), 8);
  assert.throws(() => runInSpan(job, undefined, () => assert.fail('as ever')), /as ever/);
});

test('the trace of whoever adds a job continues in its handler', async () => {
  const spans = installTracing();
  try {
    const queue = open({ tracing: true });
    const ran: (SpanContext | undefined)[] = [];
    const worker = queue.work(
      (job) => {
        ran.push(trace.getSpanContext(context.active()));
        if (job.data === 'die') throw new GiveUp('no');
      },
      { concurrency: 1 },
    );
    const producer = trace.getTracer('test').startSpan('request');
    await context.with(trace.setSpan(ROOT_CONTEXT, producer), () => queue.add('ok', { id: 'traced' }));
    await waitUntil('the traced job has run', () => ran.length === 1);
    await queue.add('die');
    await waitUntil('the other has run', () => ran.length === 2);
    await worker.stop();
    const [request, traced, alone] = spans as [FakeSpan, FakeSpan, FakeSpan];
    assert.equal(traced.name, 'process jobs');
    assert.equal(traced.spanContext().traceId, request.spanContext().traceId);
    assert.deepEqual(
      traced.links.map(({ context }) => context.spanId),
      [request.spanContext().spanId],
    );
    assert.equal(traced.attributes['messaging.message.id'], 'traced');
    assert.deepEqual(ran[0], traced.spanContext());
    assert.deepEqual([traced.ended, traced.status], [1, undefined]);
    assert.notEqual(alone.spanContext().traceId, request.spanContext().traceId);
    assert.deepEqual([alone.ended, alone.status, alone.links.length], [1, SpanStatusCode.ERROR, 0]);
  } finally {
    trace.disable();
    context.disable();
    propagation.disable();
  }
});

/** The least that OpenTelemetry needs instead of its SDK: spans in a list, contexts that follow calls, one header. */
function installTracing(): FakeSpan[] {
  const spans: FakeSpan[] = [];
  const store = new AsyncLocalStorage<Context>();
  context.setGlobalContextManager({
    active: () => store.getStore() ?? ROOT_CONTEXT,
    with: (next, fn, self, ...args) => store.run(next, () => fn.apply(self, args)),
    bind: (_context, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  propagation.setGlobalPropagator({
    fields: () => ['traceparent'],
    inject(from, carrier, setter) {
      const span = trace.getSpanContext(from);
      if (span) setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-01`);
    },
    extract(into, carrier, getter) {
      const [, traceId, spanId] = String(getter.get(carrier, 'traceparent')).split('-');
      return traceId && spanId
        ? trace.setSpanContext(into, { traceId, spanId, traceFlags: 1, isRemote: true })
        : into;
    },
  });
  const startSpan = (name: string, options: SpanOptions = {}, parent: Context = context.active()) => {
    const span = new FakeSpan(name, options, trace.getSpanContext(parent)?.traceId, spans.length + 1);
    spans.push(span);
    return span as unknown as Span;
  };
  trace.setGlobalTracerProvider({
    getTracer: () => ({ startSpan, startActiveSpan: () => undefined as never }),
  });
  return spans;
}

class FakeSpan {
  readonly name: string;
  readonly attributes: Attributes;
  readonly links: Link[];
  readonly #context: SpanContext;
  ended = 0;
  status: SpanStatusCode | undefined;

  constructor(name: string, options: SpanOptions, traceId: string | undefined, number: number) {
    this.name = name;
    this.attributes = options.attributes ?? {};
    this.links = options.links ?? [];
    const id = String(number).padStart(16, '0');
    this.#context = { traceId: traceId ?? id + id, spanId: id, traceFlags: 1 };
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  recordException(): void {}

  setStatus({ code }: { code: SpanStatusCode }): void {
    this.status = code;
  }

  end(): void {
    this.ended++;
  }
}
