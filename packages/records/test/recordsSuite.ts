/** What records promise, asked of any PostgreSQL: the packaged one and Debian's run the same tests. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import type { PostgresServer } from '@sluice/testbed';
import { openRecords, type BeginUpload, type Change, type Records, type StoreWhole } from '../src/index.js';

const DRIVE = 'files';

/** A tenant of its own for each test, so that all can share a database. */
function newTenant(): string {
  return `tenant-${randomUUID()}`;
}

const code = (wanted: string) => (error: unknown) => {
  assert.ok(isSluiceError(error, wanted), `${wanted} was expected, not ${String(error)}`);
  return true;
};

export function recordsSuite(
  title: string,
  start: () => Promise<PostgresServer>,
  skip: string | false,
): void {
  describe(title, { skip }, () => {
    let server: PostgresServer;
    let url: string;
    let records: Records;

    before(async () => {
      server = await start();
      url = await server.createDatabase();
      records = await openRecords({ url });
    });
    after(async () => {
      await records?.close();
      await server?.stop();
    });

    async function newDrive(): Promise<string> {
      const tenant = newTenant();
      await records.drives.create({ tenant, name: DRIVE, bucket: 'bucket' });
      return tenant;
    }

    function beginning(tenant: string, path: string, more: Partial<BeginUpload> = {}): BeginUpload {
      const id = randomUUID();
      return { id, tenant, drive: DRIVE, path, objectKey: `objects/${id}`, ifExists: 'replace', ...more };
    }

    function whole(tenant: string, path: string, more: Partial<StoreWhole> = {}): StoreWhole {
      return {
        ...beginning(tenant, path),
        size: 10,
        etag: '"e"',
        contentType: 'text/plain',
        ...more,
      };
    }

    const object = { size: 10, etag: '"e"', contentType: 'text/plain' };

    /** Of uploads, documents and drives that go; what is told for the sake of lists only is asked for by itself. */
    async function eventsOf(
      tenant: string,
      forLists?: 'folders.changed' | 'drives.created',
    ): Promise<Record<string, unknown>[]> {
      const sql = `SELECT payload FROM outbox WHERE payload->>'tenant' = $1 ORDER BY seq`;
      const rows = await server.query(sql, [tenant], url);
      const events = rows.map(({ payload }) => payload as Record<string, unknown>);
      if (forLists !== undefined) return events.filter(({ type }) => type === `repository.${forLists}`);
      return events.filter(({ type }) => !/folders\.changed|drives\.created/.test(String(type)));
    }

    const idsOf = (events: Record<string, unknown>[]): string[] =>
      events.map(({ eventId }) => eventId as string);

    async function doomed(): Promise<string[]> {
      const rows = await server.query('SELECT object_key FROM doomed_objects', [], url);
      return rows.map((row) => row['object_key'] as string);
    }

    test('processes that start at once all find the schema, and it is made once', async () => {
      const fresh = await server.createDatabase();
      const opened = await Promise.all([1, 2, 3, 4].map(() => openRecords({ url: fresh, poolSize: 2 })));
      const rows = await server.query('SELECT version FROM sluice_migrations ORDER BY version', [], fresh);
      const files = readdirSync(new URL('../../sql/', import.meta.url)).sort();
      assert.deepEqual(
        rows,
        files.map((file) => ({ version: Number(file.slice(0, 4)) })),
      );
      assert.equal(opened[0]!.schemaVersion, Number(files.at(-1)!.slice(0, 4)));
      await Promise.all(opened.map((each) => each.close()));
    });

    test('a schema that is newer than the program is refused and left alone', async () => {
      const fresh = await server.createDatabase();
      await (await openRecords({ url: fresh })).close();
      await server.query(`INSERT INTO sluice_migrations (version, name) VALUES (9999, 'later')`, [], fresh);
      await assert.rejects(openRecords({ url: fresh }), code('SCHEMA_TOO_NEW'));
    });

    test('creating a drive twice gives one drive; other settings are refused', async () => {
      const tenant = newTenant();
      const wanted = { tenant, name: 'photos', bucket: 'b', prefix: 'p/' };
      const [one, two] = await Promise.all([records.drives.create(wanted), records.drives.create(wanted)]);
      assert.equal(one.id, two.id);
      await assert.rejects(records.drives.create({ ...wanted, bucket: 'other' }), code('DRIVE_CONFLICT'));
      assert.deepEqual(
        (await records.drives.list(tenant)).map(({ name }) => name),
        ['photos'],
      );
      assert.equal(await records.drives.get(newTenant(), 'photos'), undefined);
    });

    test('a drive that is made is in the outbox once, and told by whoever made it or came late', async () => {
      const told: Change[] = [];
      const onChange = async (change: Change) => void told.push(change);
      const telling = await openRecords({ url, poolSize: 2, onChange });
      const tenant = newTenant();
      const { id } = await telling.drives.create({ tenant, name: 'photos', bucket: 'b' });
      await telling.drives.create({ tenant, name: 'photos', bucket: 'b' });
      const photos = { what: 'drive', tenant, drive: 'photos' };
      const there = { ...photos, is: 'there' };
      assert.deepEqual(told.splice(0), [there, there]);
      const [event, ...more] = await eventsOf(tenant, 'drives.created');
      assert.deepEqual(more, []);
      assert.deepEqual(
        [event!['type'], event!['eventId'], event!['drive']],
        ['repository.drives.created', `${id}:created`, 'photos'],
      );
      // The answer to the first deletion may have been lost: the second tells for it.
      assert.equal(await telling.drives.delete(tenant, 'photos'), true);
      assert.equal(await telling.drives.delete(tenant, 'photos'), false);
      const gone = { ...photos, is: 'gone' };
      assert.deepEqual(told.splice(0), [gone, gone]);
      await telling.close();
    });

    test('an object that lies where its drive does not look is refused', async () => {
      const tenant = await newDrive();
      const place = { bucket: 'bucket', prefix: '' };
      const elsewhere = [
        { bucket: 'another', prefix: '' },
        { bucket: 'bucket', prefix: 'p/' },
      ];
      for (const wrong of elsewhere) {
        await assert.rejects(records.uploads.begin(beginning(tenant, 'a', wrong)), code('DRIVE_NOT_FOUND'));
        await assert.rejects(records.uploads.storeWhole(whole(tenant, 'a', wrong)), code('DRIVE_NOT_FOUND'));
      }
      assert.deepEqual(await records.nodes.list(tenant, DRIVE, null), []);
      await records.uploads.storeWhole(whole(tenant, 'a', place));
      await records.uploads.begin(beginning(tenant, 'b', place));
    });

    test('a drive is deleted only when nothing is in it', async () => {
      const tenant = await newDrive();
      const { upload } = await records.uploads.begin(beginning(tenant, 'a'));
      await assert.rejects(records.drives.delete(tenant, DRIVE), code('DRIVE_NOT_EMPTY'));
      await records.uploads.end({ id: upload.id, status: 'CANCELLED', reason: 'test' });
      assert.equal(await records.drives.delete(tenant, DRIVE), true);
      assert.equal(await records.drives.delete(tenant, DRIVE), false);
      await assert.rejects(records.uploads.begin(beginning(tenant, 'a')), code('DRIVE_NOT_FOUND'));
    });

    test('an upload begins with a pending node, its folders and one event', async () => {
      const tenant = await newDrive();
      const metadata = { camera: 'box' };
      const request = beginning(tenant, 'a/b/c.txt', { declaredSize: 10, metadata, owner: 'ann' });
      const { upload, node, isUpdate, replayed } = await records.uploads.begin(request);
      assert.deepEqual([upload.status, node!.status, node!.version], ['OPEN', 'PENDING', 0]);
      assert.deepEqual([isUpdate, replayed, node!.owner], [false, false, 'ann']);
      assert.deepEqual({ ...node!.metadata }, metadata);
      const folder = await records.nodes.getByPath(tenant, DRIVE, 'a/b');
      assert.deepEqual([folder!.type, folder!.status, node!.parentId], ['FOLDER', 'ACTIVE', folder!.id]);
      const [event, ...rest] = await eventsOf(tenant);
      assert.deepEqual(rest, []);
      assert.equal(event!['eventId'], `${upload.id}:initiated`);
      assert.equal(event!['type'], 'repository.uploads.initiated');
      assert.match(String(event!['occurredAt']), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    });

    test('activation makes the node ACTIVE once, however often it is repeated', async () => {
      const tenant = await newDrive();
      const { upload, node } = await records.uploads.begin(beginning(tenant, 'a.txt'));
      await records.uploads.raiseFence(upload.id, 7);
      const activation = { id: upload.id, fence: 7, ...object, sha256: 'ab', crc64: 'cd' };
      const answers = await Promise.all([1, 2, 3].map(() => records.uploads.activate(activation)));
      assert.deepEqual(
        answers.map(({ replayed }) => Number(replayed)).sort((a, b) => a - b),
        [0, 1, 1],
      );
      for (const { result } of answers) assert.deepEqual(result, answers[0]!.result);
      const active = await records.nodes.get(tenant, node!.id);
      assert.deepEqual([active!.status, active!.version, active!.objectKey], ['ACTIVE', 1, upload.objectKey]);
      assert.deepEqual([active!.sha256, active!.crc64, active!.size], ['ab', 'cd', 10]);
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 10, files: 1 });
      assert.deepEqual(idsOf(await eventsOf(tenant)), [
        `${upload.id}:initiated`,
        `${upload.id}:completed`,
        `${node!.id}:1:created`,
      ]);
    });

    test('a replacement keeps the old file until it is activated, and then dooms its object', async () => {
      const tenant = await newDrive();
      const first = await records.uploads.storeWhole(whole(tenant, 'a.txt'));
      const { upload, isUpdate, previousVersion } = await records.uploads.begin(beginning(tenant, 'a.txt'));
      assert.deepEqual([isUpdate, previousVersion, upload.nodeId], [true, 1, first.node!.id]);
      const meanwhile = await records.nodes.get(tenant, first.node!.id);
      assert.deepEqual([meanwhile!.status, meanwhile!.objectKey], ['ACTIVE', first.upload.objectKey]);
      const second = await records.uploads.activate({ id: upload.id, fence: 0, ...object, size: 25 });
      assert.deepEqual([second.isUpdate, second.node!.version, second.node!.id], [true, 2, first.node!.id]);
      assert.ok((await doomed()).includes(first.upload.objectKey));
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 25, files: 1 });
      assert.equal((await eventsOf(tenant)).at(-1)!['eventId'], `${first.node!.id}:2:updated`);
    });

    test('two open uploads to one path are allowed, and the last activation wins', async () => {
      const tenant = await newDrive();
      const [one, two] = await Promise.all([
        records.uploads.begin(beginning(tenant, 'new/a.txt')),
        records.uploads.begin(beginning(tenant, 'new/a.txt')),
      ]);
      assert.equal(one.upload.nodeId, two.upload.nodeId);
      await records.uploads.activate({ id: two.upload.id, fence: 0, ...object });
      const last = await records.uploads.activate({ id: one.upload.id, fence: 0, ...object });
      assert.deepEqual([last.node!.version, last.node!.objectKey], [2, one.upload.objectKey]);
      assert.ok((await doomed()).includes(two.upload.objectKey));
    });

    test('"fail" never overwrites, neither when it begins nor when it is activated', async () => {
      const tenant = await newDrive();
      const careful = await records.uploads.begin(beginning(tenant, 'a.txt', { ifExists: 'fail' }));
      await records.uploads.storeWhole(whole(tenant, 'a.txt'));
      await assert.rejects(
        records.uploads.begin(beginning(tenant, 'a.txt', { ifExists: 'fail' })),
        code('NODE_EXISTS'),
      );
      const late = { id: careful.upload.id, fence: 0, ...object };
      await assert.rejects(records.uploads.activate(late), code('NODE_EXISTS'));
      assert.equal((await records.nodes.getByPath(tenant, DRIVE, 'a.txt'))!.version, 1);
    });

    test('an activation with an older fence is refused and changes nothing', async () => {
      const tenant = await newDrive();
      const { upload, node } = await records.uploads.begin(beginning(tenant, 'a.txt'));
      assert.equal((await records.uploads.raiseFence(upload.id, 5)).fence, 5);
      assert.equal((await records.uploads.raiseFence(upload.id, 5)).fence, 5);
      await assert.rejects(records.uploads.raiseFence(upload.id, 4), code('UPLOAD_FENCED'));
      await assert.rejects(
        records.uploads.activate({ id: upload.id, fence: 4, ...object }),
        code('UPLOAD_FENCED'),
      );
      assert.equal((await records.nodes.get(tenant, node!.id))!.status, 'PENDING');
      await records.uploads.activate({ id: upload.id, fence: 5, ...object });
      assert.equal((await records.uploads.raiseFence(upload.id, 9)).status, 'COMPLETED');
      await assert.rejects(records.uploads.raiseFence('nobody', 1), code('UPLOAD_NOT_FOUND'));
    });

    test('an object that is not what was announced is refused', async () => {
      const tenant = await newDrive();
      const request = beginning(tenant, 'a', { declaredSize: 11, sha256: 'aa' });
      const { upload } = await records.uploads.begin(request);
      const activation = { id: upload.id, fence: 0, ...object };
      await assert.rejects(records.uploads.activate(activation), code('SIZE_MISMATCH'));
      await assert.rejects(
        records.uploads.activate({ ...activation, size: 11, sha256: 'bb' }),
        code('DIGEST_MISMATCH'),
      );
      await records.uploads.activate({ ...activation, size: 11, sha256: 'aa' });
    });

    test('an upload that ended cannot be activated, and its node is as it was before', async () => {
      const tenant = await newDrive();
      for (const status of ['CANCELLED', 'EXPIRED', 'FAILED'] as const) {
        const { upload, node } = await records.uploads.begin(beginning(tenant, `${status}.txt`));
        const ended = await records.uploads.end({ id: upload.id, status, reason: 'tired\nof it\u0000' });
        assert.deepEqual(
          [ended.changed, ended.upload.status, ended.upload.reason],
          [true, status, 'tired of it '],
        );
        const again = await records.uploads.end({ id: upload.id, status: 'FAILED', reason: 'again' });
        assert.deepEqual([again.changed, again.upload.status], [false, status]);
        const left = await records.nodes.get(tenant, node!.id);
        assert.equal(left?.status, status === 'FAILED' ? 'FAILED' : undefined);
        const late = { id: upload.id, fence: 0, ...object };
        await assert.rejects(records.uploads.activate(late), code('UPLOAD_ENDED'));
        assert.equal((await eventsOf(tenant)).at(-1)!['eventId'], `${upload.id}:failed`);
        assert.ok((await doomed()).includes(upload.objectKey));
      }
      const retry = await records.uploads.begin(beginning(tenant, 'FAILED.txt'));
      assert.equal(retry.node!.status, 'PENDING');
    });

    test('ending one of two uploads leaves the node to the other', async () => {
      const tenant = await newDrive();
      const one = await records.uploads.begin(beginning(tenant, 'a'));
      const two = await records.uploads.begin(beginning(tenant, 'a'));
      await records.uploads.end({ id: one.upload.id, status: 'CANCELLED', reason: '' });
      assert.equal((await records.nodes.get(tenant, two.upload.nodeId))!.status, 'PENDING');
      const { node } = await records.uploads.activate({ id: two.upload.id, fence: 0, ...object });
      assert.equal(node!.version, 1);
    });

    test('ending a replacement leaves the file that was there', async () => {
      const tenant = await newDrive();
      const { node } = await records.uploads.storeWhole(whole(tenant, 'a'));
      const { upload } = await records.uploads.begin(beginning(tenant, 'a'));
      await records.uploads.end({ id: upload.id, status: 'FAILED', reason: 'store down' });
      const kept = await records.nodes.get(tenant, node!.id);
      assert.deepEqual([kept!.status, kept!.objectKey, kept!.version], ['ACTIVE', node!.objectKey, 1]);
    });

    test('the same request again gets the first answer, another one with its key is refused', async () => {
      const tenant = await newDrive();
      const keyed = { idempotencyKey: 'key', requestDigest: 'digest' };
      const first = await records.uploads.begin(beginning(tenant, 'a', keyed));
      const second = await records.uploads.begin(beginning(tenant, 'a', keyed));
      assert.deepEqual([second.replayed, second.upload.id], [true, first.upload.id]);
      await assert.rejects(
        records.uploads.begin(beginning(tenant, 'b', { ...keyed, requestDigest: 'other' })),
        code('IDEMPOTENCY_CONFLICT'),
      );
      const other = await newDrive();
      assert.equal((await records.uploads.begin(beginning(other, 'a', keyed))).replayed, false);
      assert.equal(await records.nodes.getByPath(tenant, DRIVE, 'b'), undefined);
      assert.equal((await eventsOf(tenant)).length, 1);
    });

    test('the same request many times at once is one upload', async () => {
      const tenant = await newDrive();
      const request = beginning(tenant, 'deep/in/here/a', { idempotencyKey: 'key', requestDigest: 'd' });
      const answers = await Promise.all(
        Array.from({ length: 12 }, () => records.uploads.begin({ ...request, id: randomUUID() })),
      );
      assert.equal(new Set(answers.map(({ upload }) => upload.id)).size, 1);
      assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
      assert.equal((await eventsOf(tenant)).length, 1);
    });

    test('limits are exact, also for uploads that begin at the same moment', async () => {
      const tenant = await newDrive();
      const limits = { maxBytes: 100, maxOpenUploads: 10, maxFileBytes: 60 };
      const tooLarge = beginning(tenant, 'x', { declaredSize: 61, limits });
      await assert.rejects(records.uploads.begin(tooLarge), code('FILE_TOO_LARGE'));
      const many = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          records.uploads.begin(beginning(tenant, `${i}`, { declaredSize: 30, limits })),
        ),
      );
      assert.equal(many.filter(({ status }) => status === 'fulfilled').length, 3);
      for (const each of many) if (each.status === 'rejected') code('QUOTA_EXCEEDED')(each.reason);
      const small = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          records.uploads.begin(beginning(tenant, `s${i}`, { declaredSize: 0, limits })),
        ),
      );
      assert.equal(small.filter(({ status }) => status === 'fulfilled').length, 7);
      for (const each of small) if (each.status === 'rejected') code('TOO_MANY_UPLOADS')(each.reason);
    });

    test('a size that was not announced is held against the limits when it is known', async () => {
      const tenant = await newDrive();
      const { upload } = await records.uploads.begin(beginning(tenant, 'a'));
      const activation = { id: upload.id, fence: 0, ...object };
      await assert.rejects(
        records.uploads.activate({ ...activation, limits: { maxBytes: 9 } }),
        code('QUOTA_EXCEEDED'),
      );
      await records.uploads.activate({ ...activation, limits: { maxBytes: 10 } });
    });

    test('a file is replaced and deleted only while it is the one that was meant, whoever else tries at once', async () => {
      const tenant = await newDrive();
      const first = await records.uploads.storeWhole(whole(tenant, 'a', { etag: '"one"' }));
      const meant = { ifMatch: ['other', 'one'] };
      await assert.rejects(
        records.uploads.storeWhole(whole(tenant, 'a', { etag: '"x"', ifMatch: ['other'] })),
        code('PRECONDITION_FAILED'),
      );
      await assert.rejects(
        records.uploads.storeWhole(whole(tenant, 'nothing', { ifMatch: ['*'] })),
        code('PRECONDITION_FAILED'),
      );
      const slow = await records.uploads.begin(beginning(tenant, 'a', meant));
      const racing = await Promise.allSettled([
        ...Array.from({ length: 8 }, (_, i) =>
          records.uploads.storeWhole(whole(tenant, 'a', { etag: `"two-${i}"`, ...meant })),
        ),
        records.nodes.delete({ tenant, id: first.node!.id, ...meant }),
      ]);
      assert.equal(racing.filter(({ status }) => status === 'fulfilled').length, 1);
      for (const each of racing) if (each.status === 'rejected') code('PRECONDITION_FAILED')(each.reason);
      await assert.rejects(
        records.uploads.activate({ id: slow.upload.id, fence: 0, ...object }),
        code('PRECONDITION_FAILED'),
      );
      const any = await records.uploads.storeWhole(whole(tenant, 'b', { etag: 'bare' }));
      await records.nodes.delete({ tenant, id: any.node!.id, ifMatch: ['bare'] });
      assert.equal(await records.nodes.getByPath(tenant, DRIVE, 'b'), undefined);
    });

    test('uploads of unknown length claim room as they grow, exactly where it is narrow and in steps where there is plenty', async () => {
      const tenant = await newDrive();
      const [one, two] = [
        await records.uploads.begin(beginning(tenant, 'a')),
        await records.uploads.begin(beginning(tenant, 'b')),
      ].map(({ upload }) => upload.id) as [string, string];
      const claim = (id: string, bytes: number, maxBytes = 100) =>
        records.uploads.claim({ id, bytes, maxBytes });
      assert.equal(await claim(one, 60), 60);
      assert.equal(await claim(one, 50), 60);
      await assert.rejects(claim(two, 41), code('QUOTA_EXCEEDED'));
      assert.equal(await claim(two, 40), 40);
      const limits = { maxBytes: 100 };
      await assert.rejects(
        records.uploads.begin(beginning(tenant, 'c', { declaredSize: 1, limits })),
        code('QUOTA_EXCEEDED'),
      );
      await records.uploads.end({ id: one, status: 'CANCELLED', reason: '' });
      await assert.rejects(claim(one, 61), code('UPLOAD_ENDED'));
      assert.equal(await claim(two, 100), 100);
      assert.ok((await claim(two, 1_000, 1e12)) > 1_000);
      await assert.rejects(claim('nobody', 1), code('UPLOAD_NOT_FOUND'));
    });

    test('uploads that ended long ago are removed in batches, oldest first; open ones and files stay', async () => {
      const tenant = await newDrive();
      const ids: string[] = [];
      for (const path of ['a', 'b', 'c'])
        ids.push((await records.uploads.storeWhole(whole(tenant, path))).upload.id);
      const { upload: open } = await records.uploads.begin(beginning(tenant, 'd'));
      // Longer ago than anything else in this database.
      const sql = `UPDATE uploads SET created_at = created_at - interval '9 years', ended_at = ended_at - interval '9 years'
        WHERE tenant = $1`;
      await server.query(sql, [tenant], url);
      const endedMs = 8 * 365 * 86_400_000;
      assert.equal(await records.uploads.prune({ endedMs, limit: 2 }), 2);
      const left = await Promise.all(ids.map((id) => records.uploads.get(tenant, id)));
      assert.deepEqual(
        left.map((upload) => upload?.id),
        [undefined, undefined, ids[2]],
      );
      assert.equal(await records.uploads.prune({ endedMs, limit: 2 }), 1);
      assert.equal(await records.uploads.prune({ endedMs, limit: 2 }), 0);
      assert.equal((await records.uploads.get(tenant, open.id))!.status, 'OPEN');
      assert.equal((await records.nodes.getByPath(tenant, DRIVE, 'a'))!.status, 'ACTIVE');
    });

    test('a whole file is one step with the same outcome and the same events', async () => {
      const tenant = await newDrive();
      const request = whole(tenant, 'in/a.txt', { metadata: { a: 'b' }, declaredSize: 10 });
      const { upload, node, result } = await records.uploads.storeWhole(request);
      assert.deepEqual([upload.status, node!.status, node!.version], ['COMPLETED', 'ACTIVE', 1]);
      assert.deepEqual(idsOf(await eventsOf(tenant)), [
        `${upload.id}:initiated`,
        `${upload.id}:completed`,
        `${node!.id}:1:created`,
      ]);
      const again = await records.uploads.storeWhole(request);
      assert.deepEqual([again.replayed, again.result], [true, result]);
      assert.deepEqual((await records.uploads.get(tenant, upload.id))!.result, result);
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 10, files: 1 });
      await assert.rejects(records.uploads.storeWhole(whole(tenant, 'in')), code('NODE_EXISTS'));
      await assert.rejects(records.uploads.storeWhole(whole(tenant, 'in/a.txt/b')), code('NOT_A_FOLDER'));
    });

    test('a repetition that brought another object dooms that object', async () => {
      const tenant = await newDrive();
      const keyed = { idempotencyKey: 'k', requestDigest: 'd' };
      const first = await records.uploads.storeWhole(whole(tenant, 'a', keyed));
      const repetition = whole(tenant, 'a', keyed);
      const second = await records.uploads.storeWhole(repetition);
      assert.deepEqual([second.replayed, second.upload.id], [true, first.upload.id]);
      const keys = await doomed();
      assert.ok(keys.includes(repetition.objectKey));
      assert.ok(!keys.includes(first.upload.objectKey));
    });

    test('whole files that arrive together in new folders are all there', async () => {
      const tenant = await newDrive();
      const paths = Array.from({ length: 60 }, (_, i) => `y/${i % 3}/f${i}`);
      await Promise.all(paths.map((path) => records.uploads.storeWhole(whole(tenant, path))));
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 600, files: 60 });
      assert.equal((await eventsOf(tenant)).length, 180);
      await Promise.all(
        paths.map((path) => records.uploads.storeWhole(whole(tenant, path.replace(/f.*/, 'same')))),
      );
      const same = await records.nodes.getByPath(tenant, DRIVE, 'y/1/same');
      assert.equal(same!.version, 20);
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 630, files: 63 });
    });

    test('a file deleted under an open upload comes back with it, and no event id is used twice', async () => {
      const tenant = await newDrive();
      const { node } = await records.uploads.storeWhole(whole(tenant, 'a/b'));
      const { upload } = await records.uploads.begin(beginning(tenant, 'a/b'));
      const folder = await records.nodes.getByPath(tenant, DRIVE, 'a');
      await records.nodes.delete({ tenant, id: folder!.id, recursive: true });
      const back = await records.uploads.activate({ id: upload.id, fence: 0, ...object });
      assert.deepEqual([back.node!.path, back.node!.version, back.isUpdate], ['a/b', 2, false]);
      assert.ok(await records.nodes.getByPath(tenant, DRIVE, 'a'));
      const ids = idsOf(await eventsOf(tenant));
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(ids.includes(`${node!.id}:1:deleted`));
      assert.ok(ids.includes(`${node!.id}:2:created`));
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 10, files: 1 });
    });

    test('a pending file that is moved is activated where it is now', async () => {
      const tenant = await newDrive();
      const { upload, node } = await records.uploads.begin(beginning(tenant, 'a/b'));
      const folder = await records.nodes.getByPath(tenant, DRIVE, 'a');
      await records.nodes.move({ tenant, id: folder!.id, name: 'z' });
      await records.nodes.delete({ tenant, id: node!.id });
      const { node: active } = await records.uploads.activate({ id: upload.id, fence: 0, ...object });
      assert.equal(active!.path, 'z/b');
    });

    test('a folder is listed by name in pages, and only its own children', async () => {
      const tenant = await newDrive();
      for (const path of ['b', 'a', 'c/x', 'c/y', 'ä', 'B'])
        await records.uploads.storeWhole(whole(tenant, path));
      const names = async (parent: string | null, page: object) =>
        (await records.nodes.list(tenant, DRIVE, parent, page)).map(({ name }) => name);
      assert.deepEqual(await names(null, { limit: 3 }), ['B', 'a', 'b']);
      assert.deepEqual(await names(null, { limit: 3, after: 'b' }), ['c', 'ä']);
      const folder = await records.nodes.getByPath(tenant, DRIVE, 'c');
      assert.deepEqual(await names(folder!.id, {}), ['x', 'y']);
      await records.uploads.begin(beginning(tenant, 'c/pending'));
      assert.deepEqual(await names(folder!.id, { status: 'ACTIVE' }), ['x', 'y']);
      assert.deepEqual(await records.nodes.list(newTenant(), DRIVE, null), []);
    });

    test('a folder is made once, and a file in its way is not replaced', async () => {
      const tenant = await newDrive();
      const folder = { tenant, drive: DRIVE, path: 'a/b', metadata: { colour: 'red' } };
      const made = await records.nodes.createFolder(folder);
      assert.equal(made.created, true);
      assert.deepEqual({ ...made.node.metadata }, { colour: 'red' });
      assert.deepEqual((await records.nodes.createFolder(folder)).created, false);
      const inside = await records.nodes.createFolder({
        tenant,
        drive: DRIVE,
        parentId: made.node.id,
        name: 'c',
      });
      assert.equal(inside.node.path, 'a/b/c');
      await records.uploads.storeWhole(whole(tenant, 'file'));
      await assert.rejects(records.nodes.createFolder({ ...folder, path: 'file' }), code('NODE_EXISTS'));
      await assert.rejects(records.nodes.createFolder({ ...folder, path: 'file/x' }), code('NOT_A_FOLDER'));
    });

    test('moving a folder changes every path below it in one step', async () => {
      const tenant = await newDrive();
      for (const path of ['a/x', 'a/b/y', 'a0/z', 'a/b/c/d/e'])
        await records.uploads.storeWhole(whole(tenant, path));
      const a = (await records.nodes.getByPath(tenant, DRIVE, 'a'))!;
      const to = (await records.nodes.createFolder({ tenant, drive: DRIVE, path: 'to' })).node;
      const moved = await records.nodes.move({ tenant, id: a.id, parentId: to.id, name: 'new' });
      assert.deepEqual([moved.changed, moved.node.path, moved.node.version], [true, 'to/new', 2]);
      for (const path of ['to/new/x', 'to/new/b/y', 'to/new/b/c/d/e', 'a0/z'])
        assert.equal((await records.nodes.getByPath(tenant, DRIVE, path))!.status, 'ACTIVE', path);
      assert.equal(await records.nodes.getByPath(tenant, DRIVE, 'a/x'), undefined);
      const event = (await eventsOf(tenant)).at(-1)!;
      assert.deepEqual([event['eventId'], event['previousPath']], [`${a.id}:2:updated`, 'a']);
      const again = await records.nodes.move({ tenant, id: a.id, parentId: to.id, name: 'new' });
      assert.deepEqual([again.changed, again.node.version], [false, 2]);
      const back = await records.nodes.move({ tenant, id: a.id, parentId: null });
      assert.equal(back.node.path, 'new');
    });

    test('a move that makes no sense is refused and changes nothing', async () => {
      const tenant = await newDrive();
      for (const path of ['a/b/c', 'd/f']) await records.uploads.storeWhole(whole(tenant, path));
      const [a, b, d, f] = await Promise.all(
        ['a', 'a/b', 'd', 'd/f'].map(
          async (path) => (await records.nodes.getByPath(tenant, DRIVE, path))!.id,
        ),
      );
      const move = (id: string, more: object) => records.nodes.move({ tenant, id, ...more });
      await assert.rejects(move(a!, { parentId: b }), code('MOVE_INTO_ITSELF'));
      await assert.rejects(move(a!, { parentId: a }), code('MOVE_INTO_ITSELF'));
      await assert.rejects(move(a!, { parentId: f }), code('NOT_A_FOLDER'));
      await assert.rejects(move(a!, { name: 'd' }), code('NODE_EXISTS'));
      await assert.rejects(move(a!, { name: '..' }), code('NAME_INVALID'));
      await assert.rejects(move(a!, { parentId: randomUUID() }), code('NODE_NOT_FOUND'));
      await assert.rejects(move('not-an-id', {}), code('NODE_NOT_FOUND'));
      await assert.rejects(
        records.nodes.move({ tenant: newTenant(), id: a!, name: 'x' }),
        code('NODE_NOT_FOUND'),
      );
      const segment = 'n'.repeat(250);
      const deep = [1, 2, 3, 4].map(() => segment).join('/');
      const { node } = await records.nodes.createFolder({ tenant, drive: DRIVE, path: deep });
      await assert.rejects(move(a!, { parentId: node.id, name: 'n'.repeat(20) }), code('PATH_TOO_LONG'));
      assert.equal((await records.nodes.get(tenant, a!))!.version, 1);
      assert.ok(d);
    });

    test('a deletion dooms the objects in its transaction, and they are listed until forgotten', async () => {
      const tenant = await newDrive();
      const files = await Promise.all(
        ['a/x', 'a/b/y'].map((path) => records.uploads.storeWhole(whole(tenant, path))),
      );
      const keys = files.map(({ upload }) => upload.objectKey).sort();
      const folder = (await records.nodes.getByPath(tenant, DRIVE, 'a'))!;
      await assert.rejects(records.nodes.delete({ tenant, id: folder.id }), code('FOLDER_NOT_EMPTY'));
      const limited = { tenant, id: folder.id, recursive: true, limit: 2 };
      await assert.rejects(records.nodes.delete(limited), code('FOLDER_TOO_LARGE'));
      assert.deepEqual(await records.nodes.delete({ tenant: newTenant(), id: folder.id, recursive: true }), {
        deleted: 0,
        objectKeys: [],
      });
      const deletion = await records.nodes.delete({ tenant, id: folder.id, recursive: true });
      assert.deepEqual([deletion.deleted, deletion.objectKeys.sort()], [4, keys]);
      assert.equal((await records.nodes.delete({ tenant, id: folder.id })).deleted, 0);
      assert.deepEqual(await records.uploads.usage(tenant), { bytes: 0, files: 0 });
      const gone = (await eventsOf(tenant)).filter(({ type }) => type === 'repository.documents.deleted');
      assert.deepEqual(
        idsOf(gone).sort(),
        [...files.map(({ node }) => `${node!.id}:1:deleted`), `${folder.id}:1:deleted`].sort(),
      );
      const listed = (await records.doomed.list({ limit: 1_000 })).filter(({ objectKey }) =>
        keys.includes(objectKey),
      );
      assert.deepEqual(
        listed.map(({ objectKey, bucket }) => `${bucket}:${objectKey}`).sort(),
        keys.map((key) => `bucket:${key}`),
      );
      const ripe = await records.doomed.list({ limit: 1_000, graceMs: 3_600_000 });
      assert.deepEqual(
        ripe.filter(({ objectKey }) => keys.includes(objectKey)),
        [],
      );
      await records.doomed.forget(keys);
      assert.ok(!(await doomed()).some((key) => keys.includes(key)));
    });

    test('files that arrive while their folder is moved end up in it, wherever it is', async () => {
      const tenant = await newDrive();
      const folder = (await records.nodes.createFolder({ tenant, drive: DRIVE, path: 'f/g' })).node;
      const top = (await records.nodes.getByPath(tenant, DRIVE, 'f'))!;
      const arrivals = Array.from({ length: 40 }, (_, i) => {
        const { path: _path, ...request } = whole(tenant, 'x') as StoreWhole & { path: string };
        return records.uploads.storeWhole({ ...request, parentId: folder.id, name: `n${i}` });
      });
      const moves = (async () => {
        for (let i = 0; i < 10; i++) await records.nodes.move({ tenant, id: top.id, name: `f${i}` });
      })();
      await Promise.all([...arrivals, moves]);
      const rows = await server.query(
        `SELECT count(*)::int AS wrong FROM nodes n JOIN nodes p ON p.id = n.parent_id
         WHERE n.tenant = $1 AND n.path <> p.path || '/' || n.name`,
        [tenant],
        url,
      );
      assert.deepEqual(rows, [{ wrong: 0 }]);
      const children = await records.nodes.list(tenant, DRIVE, folder.id, { limit: 100 });
      assert.equal(children.length, 40);
      assert.ok(children.every(({ path }) => path.startsWith('f9/g/')));
    });

    test('uploads, deletions and moves in each other’s way leave usage and objects in order', async () => {
      const tenant = await newDrive();
      const stir = async (seed: number): Promise<void> => {
        for (let i = 0; i < 12; i++) {
          const path = `p${(seed + i) % 3}/f${(seed * i) % 4}`;
          const { node } = await records.uploads.storeWhole(whole(tenant, path));
          if (i % 4 === seed % 4) await records.nodes.delete({ tenant, id: node!.id });
          const folder = await records.nodes.getByPath(tenant, DRIVE, `p${i % 3}`);
          if (i % 5 === 0 && folder) await records.nodes.delete({ tenant, id: folder.id, recursive: true });
        }
      };
      await Promise.all([1, 2, 3, 4, 5, 6].map(stir));
      const sql = `SELECT coalesce(sum(size), 0)::int AS bytes, count(*)::int AS files FROM nodes
        WHERE tenant = $1 AND type = 'FILE'`;
      const [counted] = await server.query(sql, [tenant], url);
      assert.deepEqual(await records.uploads.usage(tenant), counted);
      const lost = await server.query(
        `SELECT u.object_key FROM uploads u
         WHERE u.tenant = $1 AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.object_key = u.object_key)
           AND NOT EXISTS (SELECT 1 FROM doomed_objects d WHERE d.object_key = u.object_key)`,
        [tenant],
        url,
      );
      assert.deepEqual(lost, [], 'every object belongs to a node or is doomed');
      const both = await server.query(
        'SELECT n.object_key FROM nodes n JOIN doomed_objects d USING (object_key) WHERE n.tenant = $1',
        [tenant],
        url,
      );
      assert.deepEqual(both, [], 'no object of a node is doomed');
      const ids = idsOf(await eventsOf(tenant));
      assert.equal(new Set(ids).size, ids.length);
    });

    test('every change of a file or a drive is told before its writer has the answer, and is in the outbox', async () => {
      const told: Change[] = [];
      const onChange = async (change: Change) => void told.push(change);
      const telling = await openRecords({ url, poolSize: 2, onChange });
      const tenant = await newDrive();
      const since = async (): Promise<Change[]> => told.splice(0);
      const { node } = await telling.uploads.storeWhole(whole(tenant, 'in/a.txt'));
      const file = { what: 'file', tenant, drive: DRIVE, nodeId: node!.id, path: 'in/a.txt' };
      // The folder was made for it, and the list above shows that.
      assert.deepEqual(await since(), [{ ...file, folders: [''] }]);

      const again = beginning(tenant, 'in/a.txt');
      await telling.uploads.begin(again);
      assert.deepEqual(await since(), []);
      const activation = { id: again.id, fence: 1, ...object };
      await telling.uploads.raiseFence(again.id, 1);
      await telling.uploads.activate(activation);
      assert.deepEqual(await since(), [file]);
      // Whoever repeats it may be the one who died before it could tell.
      await telling.uploads.activate(activation);
      assert.deepEqual(await since(), [{ ...file, folders: [''] }]);

      await telling.nodes.move({ tenant, id: node!.id, name: 'b.txt' });
      assert.deepEqual(await since(), [{ what: 'tree', tenant, nodeId: node!.id }]);
      await telling.nodes.delete({ tenant, id: node!.id });
      assert.deepEqual(await since(), [{ ...file, path: 'in/b.txt' }]);
      const folder = await telling.nodes.getByPath(tenant, DRIVE, 'in');
      await telling.nodes.delete({ tenant, id: folder!.id });
      assert.deepEqual(await since(), [{ what: 'tree', tenant, nodeId: folder!.id }]);
      assert.equal(await telling.drives.delete(tenant, DRIVE), true);
      assert.deepEqual(await since(), [{ what: 'drive', tenant, drive: DRIVE, is: 'gone' }]);

      const documents = (await eventsOf(tenant)).filter(({ type }) => !String(type).includes('.uploads.'));
      assert.deepEqual(
        documents.map(({ type, path }) => `${String(type).split('.').slice(1).join('.')} ${String(path)}`),
        [
          'documents.created in/a.txt',
          'documents.updated in/a.txt',
          'documents.updated in/b.txt',
          'documents.deleted in/b.txt',
          'documents.deleted in',
          'drives.deleted undefined',
        ],
      );
      await telling.close();
    });

    test('every change of a list that no document tells of is told, and is in the outbox', async () => {
      const told: Change[] = [];
      const onChange = async (change: Change) => void told.push(change);
      const telling = await openRecords({ url, poolSize: 2, onChange });
      const tenant = await newDrive();
      const lists = (...folders: string[]) => ({ what: 'lists', tenant, drive: DRIVE, folders });
      const since = (): Change[] => told.splice(0);
      const inOutbox: string[] = [];
      const toldLater = async (...folders: string[]) => {
        inOutbox.push(...folders);
        assert.deepEqual(
          (await eventsOf(tenant, 'folders.changed')).map(({ path }) => path),
          inOutbox,
        );
      };

      await telling.nodes.createFolder({ tenant, drive: DRIVE, path: 'a/b' });
      assert.deepEqual(since(), [lists('')]);
      await toldLater('');
      await telling.nodes.createFolder({ tenant, drive: DRIVE, path: 'a/b/c/d' });
      assert.deepEqual(since(), [lists('a/b')]);
      await toldLater('a/b');
      // There already: an earlier attempt may have made it.
      await telling.nodes.createFolder({ tenant, drive: DRIVE, path: 'a/b' });
      assert.deepEqual(since(), [lists('a', '')]);

      const upload = beginning(tenant, 'a/x/file');
      const { node } = await telling.uploads.begin(upload);
      assert.deepEqual(since(), [lists('a/x', 'a')]);
      await toldLater('a');
      await telling.uploads.end({ id: upload.id, status: 'FAILED', reason: 'r' });
      assert.deepEqual(since(), [lists('a/x')]);
      await telling.nodes.move({ tenant, id: node!.id, parentId: null });
      assert.deepEqual(since(), [{ what: 'tree', tenant, nodeId: node!.id }]);
      await toldLater('a/x', '');
      await telling.nodes.delete({ tenant, id: node!.id });
      assert.deepEqual(since(), [{ what: 'file', tenant, drive: DRIVE, nodeId: node!.id, path: 'file' }]);
      await toldLater('');
      await telling.close();
    });

    test('a client’s own id for a node is used once in a drive', async () => {
      const tenant = await newDrive();
      const named = { clientNodeId: 'mine' };
      const { node } = await records.uploads.storeWhole(whole(tenant, 'a', named));
      assert.equal(node!.clientNodeId, 'mine');
      assert.equal((await records.uploads.begin(beginning(tenant, 'a', named))).isUpdate, true);
      await assert.rejects(records.uploads.begin(beginning(tenant, 'b', named)), code('NODE_EXISTS'));
      await assert.rejects(records.uploads.storeWhole(whole(tenant, 'b', named)), code('NODE_EXISTS'));
    });

    test('open uploads are listed by age for whoever ends the abandoned ones', async () => {
      const tenant = await newDrive();
      const { upload } = await records.uploads.begin(beginning(tenant, 'a'));
      const later = new Date(Date.now() + 60_000);
      const open = await records.uploads.listOpen({ olderThan: later, limit: 1_000 });
      assert.ok(open.some(({ id }) => id === upload.id));
      assert.ok(!(await records.uploads.listOpen({ olderThan: new Date(0), limit: 10 })).length);
    });

    test('uploads under way are paged from the newest, of one tenant or of all, and counted', async () => {
      const tenant = await newDrive();
      const ids: string[] = [];
      for (const path of ['a', 'b', 'c', 'd', 'e'])
        ids.unshift((await records.uploads.begin(beginning(tenant, path))).upload.id);
      const seen: string[] = [];
      for (let before: { createdAt: Date; id: string } | undefined; ;) {
        const page = await records.uploads.pageOfOpen({ tenant, limit: 2, ...(before && { before }) });
        seen.push(...page.map(({ id }) => id));
        before = page.at(-1);
        if (!before) break;
      }
      // Of those of one millisecond, the order is that of their ids.
      assert.deepEqual(seen.toSorted(), ids.toSorted());
      const newest = await records.uploads.pageOfOpen({ limit: 1_000 });
      assert.ok(ids.every((id) => newest.some((one) => one.id === id)));
      assert.ok((await records.uploads.countOpen()) >= 5);
    });

    test('the outbox tells how many events of one node wait', async () => {
      const tenant = await newDrive();
      const { node } = await records.uploads.storeWhole(whole(tenant, 'waits'));
      assert.ok((await records.outbox.waitingFor(node!.id)) > 0);
      assert.equal(await records.outbox.waitingFor('00000000-0000-4000-8000-000000000000'), 0);
    });

    test('one tenant sees nothing of another', async () => {
      const [tenant, other] = [await newDrive(), await newDrive()];
      const { upload, node } = await records.uploads.storeWhole(whole(tenant, 'secret'));
      assert.equal(await records.nodes.get(other, node!.id), undefined);
      assert.equal(await records.nodes.getByPath(other, DRIVE, 'secret'), undefined);
      assert.equal(await records.uploads.get(other, upload.id), undefined);
      const inside = { ...beginning(other, 'x'), parentId: node!.id, name: 'x' } as Record<string, unknown>;
      delete inside['path'];
      await assert.rejects(records.uploads.begin(inside as unknown as BeginUpload), code('NODE_NOT_FOUND'));
      const same = { ...beginning(other, 'secret'), id: upload.id };
      await assert.rejects(records.uploads.begin(same), code('IDEMPOTENCY_CONFLICT'));
    });

    test('a verification result is kept with its file and told once, however often it is delivered', async () => {
      const tenant = await newDrive();
      const { node } = await records.uploads.storeWhole(whole(tenant, 'passport'));
      const nodeId = node!.id;
      const found = {
        ...{ nodeId, resultId: `r-${nodeId}`, userId: 'u1', result: 'approved' as const, score: 85.5 },
        ...{ decision: 'looks\nright', metadata: { b: [1, { c: null }], a: 'x' } },
      };
      const first = await records.verifications.take(found);
      const again = await records.verifications.take({ ...found, metadata: { a: 'x', b: [1, { c: null }] } });
      assert.deepEqual([first.replayed, again.replayed], [false, true]);
      assert.deepEqual(again.receivedAt, first.receivedAt);
      const kept = (await records.nodes.get(tenant, nodeId))!.verification!;
      assert.deepEqual([kept.result, kept.score, kept.decision], ['approved', 85.5, 'looks\nright']);
      const [listed, ...more] = await records.verifications.list(nodeId);
      assert.deepEqual([listed!.resultId, listed!.userId, more.length], [`r-${nodeId}`, 'u1', 0]);
      assert.deepEqual(listed!.metadata, { a: 'x', b: [1, { c: null }] });
      const told = (await eventsOf(tenant)).filter(({ type }) => type === 'repository.documents.verified');
      assert.deepEqual(idsOf(told), [`result:r-${nodeId}:verified`]);
      assert.deepEqual(
        [told[0]!['verificationResult'], told[0]!['score'], told[0]!['path'], told[0]!['metadata']],
        ['approved', 85.5, 'passport', { a: 'x', b: [1, { c: null }] }],
      );
    });

    test('an id of a result that comes back with something else to say is a conflict, for any file', async () => {
      const tenant = await newDrive();
      const [one, other] = await Promise.all(
        ['one', 'other'].map((name) => records.uploads.storeWhole(whole(tenant, name))),
      );
      const resultId = randomUUID();
      const found = { nodeId: one!.node!.id, resultId, result: 'approved' as const };
      await records.verifications.take(found);
      for (const changed of [{ result: 'rejected' as const }, { nodeId: other!.node!.id }, { score: 1 }])
        await assert.rejects(records.verifications.take({ ...found, ...changed }), code('RESULT_CONFLICT'));
      assert.equal((await records.nodes.get(tenant, one!.node!.id))!.verification!.result, 'approved');
      assert.equal((await records.nodes.get(tenant, other!.node!.id))!.verification, undefined);
    });

    test('a result without an id is known by what it says; twenty deliveries at once are one', async () => {
      const tenant = await newDrive();
      const { node } = await records.uploads.storeWhole(whole(tenant, 'a'));
      const said = { nodeId: node!.id, result: 'rejected' as const, score: 3 };
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => records.verifications.take(said)));
      assert.equal(outcomes.filter(({ replayed }) => !replayed).length, 1);
      await records.verifications.take({ ...said, score: 4 });
      assert.equal((await records.verifications.list(node!.id)).length, 2);
      const told = (await eventsOf(tenant)).filter(({ type }) => type === 'repository.documents.verified');
      assert.equal(told.length, 2);
    });

    test('a result belongs to the bytes that were looked at, and goes with the file', async () => {
      const tenant = await newDrive();
      const { node } = await records.uploads.storeWhole(whole(tenant, 'a'));
      await records.verifications.take({ nodeId: node!.id, result: 'approved' });
      await records.nodes.move({ tenant, id: node!.id, name: 'b' });
      assert.equal((await records.nodes.get(tenant, node!.id))!.verification!.result, 'approved');
      await records.uploads.storeWhole(whole(tenant, 'b'));
      assert.equal((await records.nodes.get(tenant, node!.id))!.verification, undefined);
      assert.equal((await records.verifications.list(node!.id)).length, 1);
      await records.nodes.delete({ tenant, id: node!.id });
      assert.deepEqual(await records.verifications.list(node!.id), []);
    });

    test('a result for nothing, or one that cannot be kept, is refused and changes nothing', async () => {
      const tenant = await newDrive();
      const { node: folder } = await records.nodes.createFolder({ tenant, drive: DRIVE, path: 'folder' });
      const { node: pending } = await records.uploads.begin(beginning(tenant, 'pending'));
      const { node } = await records.uploads.storeWhole(whole(tenant, 'a'));
      const refused = (wanted: string, more: object) =>
        assert.rejects(
          records.verifications.take({ nodeId: node!.id, result: 'approved', ...more }),
          code(wanted),
        );
      for (const nodeId of [randomUUID(), folder.id, pending!.id, 'x', `' OR 1=1`])
        await refused('NODE_NOT_FOUND', { nodeId });
      let deep: object = {};
      for (let level = 0; level < 100; level++) deep = { deep };
      await refused('VALUE_INVALID', { metadata: deep });
      await refused('VALUE_INVALID', { metadata: { a: ['\u0000'] } });
      await refused('VALUE_INVALID', { metadata: { '\ud800': 1 } });
      await refused('VALUE_INVALID', { metadata: { a: Infinity } });
      await refused('VALUE_INVALID', { metadata: { a: 'x'.repeat(70_000) } });
      await refused('VALUE_INVALID', { decision: 'a\u0000' });
      await refused('VALUE_INVALID', { resultId: '' });
      await refused('VALUE_INVALID', { resultId: 'x'.repeat(201) });
      await refused('VALUE_INVALID', { score: Number.NaN });
      await refused('VALUE_INVALID', { result: 'maybe' });
      assert.equal((await records.nodes.get(tenant, node!.id))!.verification, undefined);
      assert.deepEqual(await records.verifications.list(node!.id), []);
    });

    test('hostile input is refused with a reason and changes nothing', async () => {
      const tenant = await newDrive();
      const refused = async (wanted: string, more: object): Promise<void> => {
        const request = { ...beginning(tenant, 'fine'), ...more };
        await assert.rejects(records.uploads.begin(request), code(wanted));
        await assert.rejects(records.uploads.storeWhole({ ...object, ...request }), code(wanted));
      };
      await refused('NAME_INVALID', { path: '../etc/passwd' });
      await refused('NAME_INVALID', { path: `a\u202Egnp.exe` });
      await refused('PATH_TOO_LONG', { path: `${'a/'.repeat(600)}b` });
      await refused('METADATA_INVALID', { metadata: JSON.parse('{"__proto__":"x"}') as object });
      await refused('METADATA_INVALID', { metadata: { a: 'b\r\nSet-Cookie: x' } });
      await refused('VALUE_INVALID', { owner: 'a\u0000b' });
      await refused('VALUE_INVALID', { idempotencyKey: '\ud800' });
      await refused('VALUE_INVALID', { declaredSize: -1 });
      await refused('VALUE_INVALID', { declaredSize: 1.5 });
      await refused('VALUE_INVALID', { limits: { maxBytes: Number.NaN } });
      await refused('DRIVE_NOT_FOUND', { drive: `'; DROP TABLE nodes; --` });
      await refused('NODE_NOT_FOUND', { path: undefined, parentId: `' OR 1=1`, name: 'x' });
      assert.deepEqual(await records.nodes.list(tenant, DRIVE, null), []);
      assert.deepEqual(await eventsOf(tenant), []);
    });
  });
}
