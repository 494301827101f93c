// Folders and lists through the cache. A random life of a drive: after each step everything that is read through the cache is
// compared with what the records say. Each way in which a list can change also has a test of its own.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { followerKey, readEvents, RedisStreamSink, Relay } from '@sluice/events';
import type { NodeRecord, Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { waitUntil } from '@sluice/testbed';
import { ChangeFollower } from '../src/index.js';
import { drive, known, loadsOf, store, useServers, type Process } from './setup.js';

const bed = useServers();
const tenant = 'acme';
const names = ['a', 'b', 'c'];
const object = { size: 1, etag: 'e', contentType: 'text/plain' };
const idLength = 36;
/** All that a folder of these tests can hold, and so few that there are several pages. */
const pages = [{ limit: 100 }, { limit: 1 }, { limit: 2, after: 'a' }];

/** Reads everything, through the cache and directly, and says what differs first. */
async function difference(
  { reads, records }: Process,
  past: ReadonlySet<string>,
): Promise<string | undefined> {
  const nodes = await everything(records);
  const differ = (what: string, cached: unknown, direct: unknown): string | undefined => {
    const [left, right] = [JSON.stringify(cached), JSON.stringify(direct)];
    return left === right ? undefined : `${what}: the cache says ${left}, the records say ${right}`;
  };
  const folders = [undefined, ...nodes.filter(({ type }) => type === 'FOLDER')];
  const lists = folders.flatMap((folder) => pages.map((page) => ({ folder, page })));
  const ofLists = lists.map(async ({ folder, page }) => {
    const cached = (await reads.list(tenant, drive, folder, page)).map(known);
    const direct = (await records.nodes.list(tenant, drive, folder?.id ?? null, page)).map(known);
    return differ(`list of "${folder?.path ?? ''}" ${JSON.stringify(page)}`, cached, direct);
  });
  const keys = [...new Set([...past, ...nodes.flatMap(({ id, path }) => [id, path])])];
  const ofNodes = keys.map(async (key) => {
    const isId = key.length === idLength;
    const cached = isId ? await reads.node(tenant, key) : await reads.nodeAt(tenant, drive, key);
    const direct = isId
      ? await records.nodes.get(tenant, key)
      : await records.nodes.getByPath(tenant, drive, key);
    return differ(key, known(cached), known(direct));
  });
  return (await Promise.all([...ofLists, ...ofNodes])).find((found) => found !== undefined);
}

async function everything(records: Records): Promise<NodeRecord[]> {
  const all: NodeRecord[] = [];
  const walk = async (parentId: string | null): Promise<void> => {
    for (const node of await records.nodes.list(tenant, drive, parentId, { limit: 1_000 })) {
      all.push(node);
      if (node.type === 'FOLDER') await walk(node.id);
    }
  };
  await walk(null);
  return all;
}

/** The life of a drive, by chance. */
class Life {
  readonly #records: Records;
  readonly #open: string[] = [];
  /** Ids and paths that were there a step ago. */
  past = new Set<string>();

  constructor(records: Records) {
    this.#records = records;
  }

  /** One change; what is not possible just now (a file in the way) changes nothing. */
  async step(): Promise<string> {
    const acts: (() => Promise<string | undefined>)[] = [
      () => this.#store(),
      () => this.#store(),
      () => this.#begin(),
      () => this.#begin(),
      () => this.#mark(),
      () => this.#activate(),
      () => this.#end(),
      () => this.#createFolder(),
      () => this.#move(),
      () => this.#move(),
      () => this.#delete(),
    ];
    const act = pick(acts);
    this.past = new Set((await everything(this.#records)).flatMap(({ id, path }) => [id, path]));
    try {
      return (await act()) ?? 'nothing';
    } catch (error) {
      if (isSluiceError(error)) return error.code;
      throw error;
    }
  }

  async #store(): Promise<string> {
    const path = randomPath();
    await store({ records: this.#records }, tenant, path, randomUUID());
    return `stored ${path}`;
  }

  async #begin(): Promise<string> {
    const [id, path] = [randomUUID(), randomPath()];
    await this.#records.uploads.begin({ id, tenant, drive, path, objectKey: `o/${id}`, ifExists: 'replace' });
    this.#open.push(id);
    return `began ${path}`;
  }

  async #mark(): Promise<string | undefined> {
    const pending = (await everything(this.#records)).filter(({ status }) => status === 'PENDING');
    if (pending.length === 0) return undefined;
    const { id, path } = pick(pending);
    await this.#records.nodes.markUploading(id);
    return `marked ${path}`;
  }

  async #activate(): Promise<string | undefined> {
    const id = this.#open.pop();
    if (id === undefined) return undefined;
    await this.#records.uploads.raiseFence(id, 1);
    const { node } = await this.#records.uploads.activate({ id, fence: 1, ...object });
    return `activated ${node?.path}`;
  }

  async #end(): Promise<string | undefined> {
    const id = this.#open.shift();
    if (id === undefined) return undefined;
    const status = pick(['FAILED', 'FAILED', 'CANCELLED', 'EXPIRED'] as const);
    const { upload } = await this.#records.uploads.end({ id, status, reason: 'chance' });
    return `${status} ${upload.path}`;
  }

  async #createFolder(): Promise<string> {
    const path = randomPath();
    await this.#records.nodes.createFolder({ tenant, drive, path });
    return `made ${path}`;
  }

  async #move(): Promise<string | undefined> {
    const all = await everything(this.#records);
    if (all.length === 0) return undefined;
    const node = pick(all);
    const parents = [null, ...all.filter(({ type }) => type === 'FOLDER').map(({ id }) => id)];
    const parentId = pick(parents);
    const moved = await this.#records.nodes.move({ tenant, id: node.id, parentId, name: pick(names) });
    return `moved ${node.path} to ${moved.node.path}`;
  }

  async #delete(): Promise<string | undefined> {
    const all = await everything(this.#records);
    if (all.length === 0) return undefined;
    const { id, path } = pick(all);
    await this.#records.nodes.delete({ tenant, id, recursive: true });
    return `deleted ${path}`;
  }
}

function pick<T>(some: readonly T[]): T {
  return some[Math.floor(Math.random() * some.length)]!;
}

function randomPath(): string {
  const depth = 1 + Math.floor(Math.random() * 3);
  return Array.from({ length: depth }, () => pick(names)).join('/');
}

function startFollowing(t: TestContext, { cache, records }: Process, prefix: string): void {
  const link = new RedisLink(bed.redis.url);
  const relay = new Relay({ records, sink: new RedisStreamSink({ redis: link, prefix }) });
  void relay.start();
  const follower = new ChangeFollower({ cache, redis: new RedisLink(bed.redis.url), prefix });
  follower.start();
  t.after(async () => {
    await Promise.all([relay.stop(), follower.stop()]);
    link.close();
  });
}

/** All that was published has been followed: from here on nothing old corrects something new by accident. */
async function untilQuiet(t: TestContext, { records }: Process, prefix: string): Promise<void> {
  const redis = new RedisLink(bed.redis.url);
  t.after(() => redis.close());
  await waitUntil(
    'all events have been followed',
    async () => {
      if ((await records.outbox.state()).waiting > 0) return false;
      const cursor = (await redis.call('GET', [followerKey('cache', prefix)])) as Buffer | null;
      const after = cursor === null ? '0' : String(cursor);
      return (await readEvents({ redis, after, limit: 1, prefix })).length === 0;
    },
    { timeoutMs: 20_000 },
  );
  redis.close();
}

test('after each step in the life of a drive the cache says what the records say', async (t) => {
  const { open } = await bed.service(t);
  const process = await open();
  const life = new Life(process.records);
  const steps: string[] = [];
  for (let i = 0; i < 60; i++) {
    steps.push(await life.step());
    // Twice: what is read first is what the second finds.
    for (const time of ['first', 'second']) {
      const found = await difference(process, life.past);
      assert.equal(found, undefined, `the ${time} time, after ${steps.join('; ')}`);
    }
  }
  const { redisHits, nearHits } = process.cache
    .statistics()
    .families.find(({ family }) => family === 'node:list')!;
  assert.ok(redisHits + nearHits > 50, 'most of it came from the cache');
});

test('what writers that die before they can tell have done is told by the outbox, for folders and lists too', async (t) => {
  const { open, prefix } = await bed.service(t);
  const [reader, dying] = [await open(), await open({ tells: false })];
  startFollowing(t, reader, prefix);
  const life = new Life(dying.records);
  const steps: string[] = [];
  for (let round = 0; round < 8; round++) {
    for (let i = 0; i < 4; i++) {
      steps.push(await life.step());
      // Fills the cache with what will soon be wrong.
      await difference(reader, life.past);
    }
    let found: string | undefined;
    await waitUntil(
      'the cache says what the records say',
      async () => {
        found = await difference(reader, life.past);
        return found === undefined;
      },
      { timeoutMs: 20_000 },
    ).catch(() => {});
    assert.equal(found, undefined, steps.join('; '));
  }
});

test('every single way to change a list is told by its writer, and by the outbox', async (t) => {
  const { open, prefix } = await bed.service(t);
  const [teller, dying] = [await open(), await open({ tells: false })];
  startFollowing(t, teller, prefix);
  const begin = async ({ uploads }: Records, path: string) => {
    const id = randomUUID();
    const { node } = await uploads.begin({
      id,
      tenant,
      drive,
      path,
      objectKey: `o/${id}`,
      ifExists: 'replace',
    });
    return { id, node: node! };
  };
  const failed = async (records: Records, path: string) => {
    const { id, node } = await begin(records, path);
    await records.uploads.end({ id, status: 'FAILED', reason: 'r' });
    return node;
  };
  const changes: [what: string, change: (records: Records, at: string) => Promise<unknown>][] = [
    ['a file is stored', (records, at) => store({ records }, tenant, `${at}/new`, 'v1')],
    ['a file is replaced', (records, at) => store({ records }, tenant, `${at}/file`, 'v2')],
    ['a file is announced', (records, at) => begin(records, `${at}/announced`)],
    [
      'a file is announced in a folder that is made for it',
      (records, at) => begin(records, `${at}/x/y/announced`),
    ],
    [
      'a file is stored in a folder that is made for it',
      (records, at) => store({ records }, tenant, `${at}/p/q/r`, 'v1'),
    ],
    [
      'a folder is made',
      (records, at) => records.nodes.createFolder({ tenant, drive, path: `${at}/folder/below` }),
    ],
    ['an upload fails', (records, at) => failed(records, `${at}/failing`)],
    ['a failed file is announced again', (records, at) => begin(records, `${at}/failed`)],
    [
      'a failed file is moved away',
      async (records, at) => {
        const node = await records.nodes.getByPath(tenant, drive, `${at}/failed`);
        return records.nodes.move({ tenant, id: node!.id, parentId: null, name: randomUUID() });
      },
    ],
    [
      'a failed file is moved in',
      async (records, at) => {
        const [node, folder] = await Promise.all([
          records.nodes.getByPath(tenant, drive, `${at}/sub/failed`),
          records.nodes.getByPath(tenant, drive, at),
        ]);
        return records.nodes.move({ tenant, id: node!.id, parentId: folder!.id, name: 'moved in' });
      },
    ],
    [
      'a failed file is deleted',
      async (records, at) => {
        const node = await records.nodes.getByPath(tenant, drive, `${at}/failed`);
        return records.nodes.delete({ tenant, id: node!.id });
      },
    ],
    [
      'a file is renamed',
      async (records, at) => {
        const node = await records.nodes.getByPath(tenant, drive, `${at}/file`);
        return records.nodes.move({ tenant, id: node!.id, name: 'renamed' });
      },
    ],
    [
      'a file is deleted',
      async (records, at) => {
        const node = await records.nodes.getByPath(tenant, drive, `${at}/file`);
        return records.nodes.delete({ tenant, id: node!.id });
      },
    ],
    [
      'the folder above is renamed',
      async (records, at) => {
        const node = await records.nodes.getByPath(tenant, drive, at.slice(0, at.indexOf('/')));
        return records.nodes.move({ tenant, id: node!.id, name: randomUUID() });
      },
    ],
    [
      'the folder is deleted with what is in it',
      async (records, at) => {
        const node = await records.nodes.getByPath(tenant, drive, at);
        return records.nodes.delete({ tenant, id: node!.id, recursive: true });
      },
    ],
  ];
  const listed = async (at: string, reads: Pick<Process['reads'], 'node' | 'nodeAt' | 'list'>) => {
    const folder = await reads.nodeAt(tenant, drive, at);
    const nodes = folder ? await reads.list(tenant, drive, folder, { limit: 100 }) : undefined;
    return JSON.stringify([known(folder), nodes?.map(known)]);
  };
  const direct = (at: string) => {
    const { nodes } = teller.records;
    return listed(at, {
      node: (...args) => nodes.get(...args),
      nodeAt: (...args) => nodes.getByPath(...args),
      list: (of, name, folder, page) => nodes.list(of, name, folder?.id ?? null, page),
    });
  };
  async function waitUntilSeen(at: string): Promise<void> {
    await waitUntil('it is seen', async () => (await listed(at, teller.reads)) === (await direct(at)), {
      timeoutMs: 20_000,
    });
  }
  for (const writer of [teller, dying]) {
    for (const [what, change] of changes) {
      const at = `${randomUUID()}/folder`;
      await store(teller, tenant, `${at}/file`, 'v1');
      for (const name of ['failed', 'sub/failed']) await failed(teller.records, `${at}/${name}`);
      if (writer === dying) await untilQuiet(t, teller, prefix);
      const before = await listed(at, teller.reads);
      assert.equal(before, await direct(at), what);
      await change(writer.records, at);
      const after = await direct(at);
      assert.notEqual(after, before, what);
      if (writer === teller) assert.equal(await listed(at, teller.reads), after, what);
      else await waitUntilSeen(at);
    }
  }
});

test('a list and its folder are read from the records once, in all processes, until something changes', async (t) => {
  const { open } = await bed.service(t);
  const [one, two] = [await open(), await open()];
  for (const name of ['x', 'y']) await store(one, tenant, `folder/${name}`, 'v1');
  const list = async ({ reads }: Process) => {
    const folder = await reads.nodeAt(tenant, drive, 'folder');
    return (await reads.list(tenant, drive, folder, { limit: 10 })).map(({ name }) => name);
  };
  for (const process of [one, two, one, two]) assert.deepEqual(await list(process), ['x', 'y']);
  for (const family of ['node:at', 'node:list'])
    assert.equal(loadsOf(one, family) + loadsOf(two, family), 1, family);
  const other = await one.reads.list(tenant, drive, undefined, { limit: 10 });
  assert.deepEqual(
    other.map(({ name }) => name),
    ['folder'],
  );
  await store(one, tenant, 'folder/z', 'v1');
  assert.deepEqual(await list(one), ['x', 'y', 'z']);
  await waitUntil('the other process sees it', async () => (await list(two)).length === 3);
  const loads = loadsOf(one, 'node:list') + loadsOf(two, 'node:list');
  await one.reads.list(tenant, drive, undefined, { limit: 10 });
  assert.equal(loadsOf(one, 'node:list') + loadsOf(two, 'node:list'), loads, 'the list above is as it was');
});

test('a list that shows a file which is still to come is not kept', async (t) => {
  const { open } = await bed.service(t);
  const process = await open();
  const { reads, records } = process;
  const id = randomUUID();
  const { node } = await records.uploads.begin({
    ...{ id, tenant, drive, path: 'file', objectKey: 'o' },
    ifExists: 'replace',
  });
  const status = async () => (await reads.list(tenant, drive, undefined, { limit: 10 }))[0]?.status;
  assert.equal(await status(), 'PENDING');
  await records.nodes.markUploading(node!.id);
  assert.equal(await status(), 'UPLOADING');
});

test('a folder that was asked for by its id and has just moved is listed all the same', async (t) => {
  const { open } = await bed.service(t);
  const { reads, records } = await open();
  await store({ records }, tenant, 'before/file', 'v1');
  const folder = (await reads.nodeAt(tenant, drive, 'before'))!;
  await records.nodes.move({ tenant, id: folder.id, name: 'after' });
  await store({ records }, tenant, 'before/other', 'v1');
  const found = await reads.list(tenant, drive, folder, { limit: 10 });
  assert.deepEqual(
    found.map(({ path }) => path),
    ['after/file'],
  );
});
