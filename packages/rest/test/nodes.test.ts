// Folders, nodes and drives: listed in pages, moved, deleted.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { randomUUID } from 'node:crypto';
import { startApi, stopServers, type Api, type Loose } from './harness.js';

let api: Api;

before(async () => {
  api = await startApi('file');
});

after(stopServers);

async function drive(): Promise<string> {
  const name = `d-${randomUUID().slice(0, 8)}`;
  assert.equal((await api.call('PUT', `/v1/drives/${name}`)).status, 200);
  return name;
}

async function file(inDrive: string, path: string): Promise<string> {
  const { status, body } = await api.send(`/v1/files/${inDrive}/${path}`, Buffer.from(path));
  assert.equal(status, 201, JSON.stringify(body));
  return body.nodeId as string;
}

async function folder(inDrive: string, path: string): Promise<string> {
  const { status, body } = await api.call('POST', '/v1/nodes', { drive: inDrive, path });
  assert.equal(status, 201, JSON.stringify(body));
  return body.id as string;
}

const refusal = ({ status, body }: { status: number; body: Loose }): unknown[] => [status, body.error?.code];

test('a node is found by its path, and nothing is an empty list', async () => {
  const name = await drive();
  const nodeId = await file(name, 'a/b%20c.txt');
  const at = async (path: string): Promise<{ status: number; body: Loose }> =>
    api.call('GET', `/v1/nodes?drive=${name}&path=${encodeURIComponent(path)}`);
  assert.equal((await at('a/b c.txt')).body.nodes[0].id, nodeId);
  assert.equal((await at('a')).body.nodes[0].type, 'FOLDER');
  assert.deepEqual((await at('a/other')).body, { nodes: [], next: null });
  assert.equal((await at('../a')).status, 400);
  assert.equal((await api.call('GET', '/v1/nodes?drive=nowhere&path=a')).status, 404);
});

test('a folder is listed by name, page by page, without gaps or repetitions', async () => {
  const name = await drive();
  const names = Array.from({ length: 25 }, (_, n) => `n${String(n).padStart(2, '0')}`);
  for (const each of names) await folder(name, each);
  const seen: string[] = [];
  let after = '';
  for (let pages = 0; pages < 10; pages++) {
    const { body } = await api.call('GET', `/v1/nodes?drive=${name}&limit=10${after}`);
    seen.push(...body.nodes.map((node: { name: string }) => node.name));
    if (body.next === null) break;
    after = `&after=${encodeURIComponent(body.next as string)}`;
  }
  assert.deepEqual(seen, names);
  for (const query of ['', 'limit=0', 'limit=1001', 'limit=x', 'limit=1.5', 'limit=5&limit=6', 'after=%00'])
    assert.equal((await api.call('GET', `/v1/nodes?drive=${name}&${query || 'after='}`)).status, 400, query);
  assert.equal((await api.call('GET', '/v1/nodes')).status, 400);
  assert.equal((await api.call('GET', `/v1/nodes?drive=${name}&drive=${name}`)).status, 400);
});

test('what is not there, or is no folder, is not an empty list', async () => {
  const name = await drive();
  const other = await drive();
  const id = await file(name, 'a/b');
  const list = (query: string) => api.call('GET', `/v1/nodes?${query}`);
  assert.deepEqual(refusal(await list('drive=nowhere')), [404, 'DRIVE_NOT_FOUND']);
  assert.deepEqual(refusal(await list(`drive=${name}&parent=${randomUUID()}`)), [404, 'NODE_NOT_FOUND']);
  assert.deepEqual(refusal(await list(`drive=${name}&parent=x`)), [404, 'NODE_NOT_FOUND']);
  assert.deepEqual(refusal(await list(`drive=${name}&parent=${id}`)), [409, 'NOT_A_FOLDER']);
  const { body } = await api.call('GET', `/v1/nodes/${id}`);
  assert.deepEqual(refusal(await list(`drive=${other}&parent=${body.parentId}`)), [404, 'NODE_NOT_FOUND']);
  assert.equal((await list(`drive=${name}&parent=${body.parentId}`)).body.nodes[0].id, id);
});

test('a folder is made once, by path or by name, and the second time it is the same one', async () => {
  const name = await drive();
  const first = await api.call('POST', '/v1/nodes', { drive: name, path: 'a/b/c' });
  assert.deepEqual([first.status, first.body.type, first.body.path], [201, 'FOLDER', 'a/b/c']);
  assert.equal(first.headers.get('location'), `/v1/nodes/${first.body.id}`);
  const again = await api.call('POST', '/v1/nodes', { drive: name, path: 'a/b/c' });
  assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
  const below = { drive: name, parentId: first.body.id, name: 'd' };
  assert.equal((await api.call('POST', '/v1/nodes', below)).body.path, 'a/b/c/d');
  assert.equal((await api.call('POST', '/v1/nodes', { drive: name, name: 'top' })).body.path, 'top');
  for (const body of [
    { drive: name },
    { drive: name, path: 'x', name: 'y' },
    { drive: name, path: 'x', parentId: first.body.id },
    { drive: name, parentId: first.body.id },
    { drive: name, name: '../x' },
    { drive: name, name: 'a/b' },
    { drive: name, path: 'x/../y' },
    { drive: name, parentId: 'x', name: 'y' },
    { drive: 'nul\u0000', name: 'y' },
    { drive: name, name: 'y', tenant: 'other' },
    { drive: name, name: 5 },
    [],
    'text',
  ])
    assert.equal((await api.call('POST', '/v1/nodes', body)).status, 400, JSON.stringify(body));
  assert.equal((await api.call('POST', '/v1/nodes')).status, 400);
  assert.equal((await api.call('POST', '/v1/nodes', { drive: 'nowhere', name: 'x' })).status, 404);
  const inFile = await file(name, 'plain');
  const place = { drive: name, parentId: inFile, name: 'x' };
  assert.deepEqual(refusal(await api.call('POST', '/v1/nodes', place)), [409, 'NOT_A_FOLDER']);
});

test('a node is renamed and moved with all that is in it', async () => {
  const name = await drive();
  const id = await file(name, 'a/b/file.txt');
  const target = await folder(name, 'target');
  const { body: a } = await api.call('GET', `/v1/nodes?drive=${name}`);
  const top = a.nodes.find((node: { name: string }) => node.name === 'a').id as string;
  const moved = await api.call('PATCH', `/v1/nodes/${top}`, { parentId: target, name: 'renamed' });
  assert.deepEqual([moved.status, moved.body.path], [200, 'target/renamed']);
  assert.equal((await api.call('GET', `/v1/nodes/${id}`)).body.path, 'target/renamed/b/file.txt');
  assert.equal(
    (await api.call('GET', `/v1/files/${name}/target/renamed/b/file.txt`)).body,
    'a/b/file.txt',
    'the bytes are where they were',
  );
  assert.equal((await api.call('GET', `/v1/files/${name}/a/b/file.txt`)).status, 404);
  const up = await api.call('PATCH', `/v1/nodes/${id}`, { parentId: null });
  assert.equal(up.body.path, 'file.txt');
  assert.equal((await api.call('PATCH', `/v1/nodes/${id}`, {})).body.path, 'file.txt');
});

test('a move into itself, onto something, out of the drive or to a bad name changes nothing', async () => {
  const [name, other] = [await drive(), await drive()];
  const outer = await folder(name, 'outer');
  const inner = await folder(name, 'outer/inner');
  const elsewhere = await folder(other, 'elsewhere');
  const plain = await file(name, 'plain');
  const move = async (id: string, change: unknown) =>
    refusal(await api.call('PATCH', `/v1/nodes/${id}`, change));
  assert.deepEqual(await move(outer, { parentId: outer }), [409, 'MOVE_INTO_ITSELF']);
  assert.deepEqual(await move(outer, { parentId: inner }), [409, 'MOVE_INTO_ITSELF']);
  assert.deepEqual(await move(inner, { parentId: null, name: 'plain' }), [409, 'NODE_EXISTS']);
  assert.deepEqual(await move(inner, { parentId: plain }), [409, 'NOT_A_FOLDER']);
  assert.deepEqual(await move(inner, { parentId: elsewhere }), [404, 'NODE_NOT_FOUND']);
  assert.deepEqual(await move(inner, { parentId: randomUUID() }), [404, 'NODE_NOT_FOUND']);
  assert.deepEqual(await move(randomUUID(), { name: 'x' }), [404, 'NODE_NOT_FOUND']);
  assert.deepEqual(await move('x', { name: 'x' }), [404, 'NODE_NOT_FOUND']);
  for (const change of [
    { name: '..' },
    { name: 'a/b' },
    { name: '' },
    { name: 'x\u0000' },
    { parentId: 'x' },
    { path: 'x' },
    { driveId: other },
    { size: 0 },
  ])
    assert.equal((await move(inner, change))[0], 400, JSON.stringify(change));
  assert.equal((await api.call('GET', `/v1/nodes/${inner}`)).body.path, 'outer/inner');
});

test('a folder with something in it is deleted only with all of it, when that is said', async () => {
  const name = await drive();
  const id = await file(name, 'a/b/c');
  await file(name, 'ab');
  const { body } = await api.call('GET', `/v1/nodes?drive=${name}`);
  const top = body.nodes.find((node: { name: string }) => node.name === 'a').id as string;
  assert.deepEqual(refusal(await api.call('DELETE', `/v1/nodes/${top}`)), [409, 'FOLDER_NOT_EMPTY']);
  assert.deepEqual(refusal(await api.call('DELETE', `/v1/nodes/${top}?recursive=false`)), [
    409,
    'FOLDER_NOT_EMPTY',
  ]);
  const deleted = await api.call('DELETE', `/v1/nodes/${top}?recursive=true`);
  assert.deepEqual([deleted.status, deleted.body.deleted], [200, 3]);
  assert.equal((await api.call('GET', `/v1/nodes/${id}`)).status, 404);
  assert.equal((await api.call('DELETE', `/v1/nodes/${top}`)).status, 404);
  assert.equal((await api.call('GET', `/v1/files/${name}/ab`)).status, 200, 'a neighbour stays');
  // Some clients name a type for no body at all.
  const ab = (await api.call('GET', `/v1/nodes?drive=${name}`)).body.nodes[0].id as string;
  const typed = { 'Content-Type': 'application/json' };
  assert.equal((await api.call('DELETE', `/v1/nodes/${ab}`, undefined, typed)).status, 200);
});

test('a file is downloaded by its id, and keeps it when it moves', async () => {
  const name = await drive();
  const id = await file(name, 'x.txt');
  await api.call('PATCH', `/v1/nodes/${id}`, { name: 'y.txt' });
  const content = await fetch(`${api.url}/v1/nodes/${id}/content`);
  assert.equal(await content.text(), 'x.txt');
  assert.match(content.headers.get('content-disposition')!, /filename="y.txt"/);
  const head = await fetch(`${api.url}/v1/nodes/${id}/content`, { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, '5']);
  const dir = await folder(name, 'folder');
  assert.equal((await api.call('GET', `/v1/nodes/${dir}/content`)).status, 404);
  assert.equal((await api.call('GET', '/v1/nodes/nonsense/content')).status, 404);
});

test('drives are made, listed and deleted when they are empty', async () => {
  const name = await drive();
  const again = await api.call('PUT', `/v1/drives/${name}`);
  assert.equal(again.body.name, name);
  assert.equal((await api.call('GET', `/v1/drives/${name}`)).body.id, again.body.id);
  assert.equal('bucket' in again.body || 'prefix' in again.body, false);
  const { body } = await api.call('GET', '/v1/drives');
  assert.ok(body.drives.some((each: { name: string }) => each.name === name));
  const later = await api.call('GET', `/v1/drives?after=${name}`);
  assert.ok(!later.body.drives.some((each: { name: string }) => each.name === name));
  await file(name, 'x');
  assert.deepEqual(refusal(await api.call('DELETE', `/v1/drives/${name}`)), [409, 'DRIVE_NOT_EMPTY']);
  await api.call('DELETE', `/v1/files/${name}/x`);
  assert.equal((await api.call('DELETE', `/v1/drives/${name}`)).status, 200);
  assert.deepEqual(refusal(await api.call('DELETE', `/v1/drives/${name}`)), [404, 'DRIVE_NOT_FOUND']);
  assert.deepEqual(refusal(await api.call('GET', `/v1/drives/${name}`)), [404, 'DRIVE_NOT_FOUND']);
  for (const bad of ['.hidden', '-x', 'a%2Fb', 'a%20b', 'x'.repeat(101), '%00', '%E2%82%AC'])
    assert.equal((await api.call('PUT', `/v1/drives/${bad}`)).status, 400, bad);
});
