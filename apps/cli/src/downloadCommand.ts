// `sluice download`: a file or a folder from the server. Bytes go into a file beside the target that gets its name when it is whole; a
// download that was cut goes on there, provided that the server still has the same file. What arrived is checked against the digest.
import { createHash } from 'node:crypto';
import { open, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pathOf } from './api.js';
import { declare, dryRunOption, type SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { bytes } from './human.js';
import { reasonOf } from './localFiles.js';
import { needNode, nodesBelow, parseFile, parsePlace, written, type NodeReply } from './place.js';
import { ProgressBar } from './progressBar.js';
import { safeLine } from './sanitise.js';

interface DownloadFlags extends ChangeOptions {
  recursive?: boolean;
  force?: boolean;
}

export function downloadCommand(program: SluiceCommand): void {
  declare(program, 'download', 'Download a file, or a folder with --recursive.')
    .argument('<place>', 'drive/folder/file')
    .argument('[target]', 'a file or a folder here; - is stdout')
    .example('download main/film.mp4', 'to film.mp4 here')
    .example('download main/backup.tar - | tar x', 'through a pipe')
    .example('download -r main/photos ~/pictures', 'a folder with all that is in it')
    .option('-r, --recursive', 'a folder with all that is in it')
    .option('-f, --force', 'replace what is there')
    .option(...dryRunOption)
    .completing(undefined, 'file')
    .runs(async (context, flags: DownloadFlags, place: string, target?: string) => {
      if (flags.recursive) await downloadFolder(context, flags, place, target ?? '.');
      else if (target === '-') await toStdout(context, place);
      else await downloadFile(context, flags, place, target);
    });
}

async function toStdout(context: Context, text: string): Promise<void> {
  if (context.out.stdout.isTTY)
    throw cliErrors.USAGE({
      reason: 'the bytes of a file do not belong on a terminal; pipe them, or name a file',
    });
  const node = await needFile(context, text);
  const reply = await context.api.open('GET', pathOf`/v1/nodes/${node.id}/content`);
  for await (const chunk of context.api.bytesOf(reply)) await context.out.bytes(chunk);
}

async function downloadFile(
  context: Context,
  flags: DownloadFlags,
  text: string,
  target: string | undefined,
): Promise<void> {
  const node = await needFile(context, text);
  const isFolder = target !== undefined && (target.endsWith('/') || (await isDirectory(context, target)));
  const file = isFolder ? join(target, basename(node.name)) : (target ?? basename(node.name));
  if (flags.dryRun) return tellPlan(context, flags, node, text, file);
  const bar = new ProgressBar(context.out);
  bar.expect(node.size ?? undefined);
  try {
    await fetchInto(context, flags, node, file, (done) => bar.set(done, node.name));
  } finally {
    bar.end();
  }
  tell(context, node, text, file);
}

async function downloadFolder(
  context: Context,
  flags: DownloadFlags,
  text: string,
  target: string,
): Promise<void> {
  const { api, out } = context;
  const place = parsePlace(text);
  const folder = place.path === '' ? undefined : await needNode(api, place);
  if (folder?.type === 'FILE') throw cliErrors.USAGE({ reason: `${text} is a file; leave out --recursive` });
  const top = folder ? dirname(folder.path) : '';
  const nodes: NodeReply[] = [];
  for await (const node of nodesBelow(api, place.drive, folder?.id)) {
    if (node.type === 'FILE' && node.status === 'ACTIVE') nodes.push(node);
  }
  const fileOf = (node: NodeReply): string => join(target, relativeName(top, node.path));
  if (flags.dryRun) {
    for (const node of nodes)
      await tellPlan(context, flags, node, `${place.drive}/${node.path}`, fileOf(node));
    return;
  }
  const bar = new ProgressBar(out);
  bar.expect(
    nodes.reduce((sum, { size }) => sum + (size ?? 0), 0),
    nodes.length,
  );
  let before = 0;
  try {
    for (const node of nodes) {
      const file = fileOf(node);
      await fetchInto(context, flags, node, file, (done) => bar.set(before + done, node.path));
      before += node.size ?? 0;
      bar.aside(() => tell(context, node, `${place.drive}/${node.path}`, file));
      bar.endFile();
    }
  } finally {
    bar.end();
  }
}

/** Names come from a server: none of them may lead out of the target. */
function relativeName(top: string, path: string): string {
  const name = top === '' || top === '.' ? path : path.slice(top.length + 1);
  const isTame = name
    .split('/')
    .every((part) => part !== '' && part !== '.' && part !== '..' && !part.includes('\\'));
  if (!isTame) throw cliErrors.FILE_PROBLEM({ path, reason: 'is not a name for a file here' });
  return name;
}

async function needFile({ api }: Context, text: string): Promise<NodeReply> {
  const node = await needNode(api, parseFile(text));
  if (node.type === 'FOLDER') throw cliErrors.USAGE({ reason: `${text} is a folder; add --recursive` });
  if (node.status !== 'ACTIVE') throw cliErrors.NOT_FOUND({ what: `${text} (it is still being uploaded)` });
  return node;
}

async function fetchInto(
  context: Context,
  { force }: DownloadFlags,
  node: NodeReply,
  file: string,
  move: (done: number) => void,
): Promise<void> {
  const path = resolve(context.environment.folder, file);
  if (!force && (await stat(path).catch(() => undefined)))
    throw cliErrors.FILE_PROBLEM({ path: file, reason: 'is already there; add --force to replace it' });
  const part = `${path}.sluice-part`;
  const mark = `${part}.etag`;
  try {
    await mkdir(dirname(path), { recursive: true });
    const begun = await begunBytes(part, mark, node);
    await writeFile(mark, node.etag ?? '');
    await receive(context, node, part, begun, move);
    await check(part, node);
    await rename(part, path);
    await rm(mark, { force: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (typeof code !== 'string' || !/^E[A-Z]+$/.test(code)) throw error;
    throw cliErrors.FILE_PROBLEM(
      { path: file, reason: reasonOf(error as NodeJS.ErrnoException) },
      { cause: error },
    );
  }
}

/** What is there of this very file, from an earlier try. */
async function begunBytes(part: string, mark: string, node: NodeReply): Promise<number> {
  const etag = await readFile(mark, 'utf8').catch(() => undefined);
  const size = await stat(part).then(
    (found) => found.size,
    () => 0,
  );
  const isSame = etag !== undefined && etag === node.etag && size <= (node.size ?? 0);
  if (!isSame) await rm(part, { force: true });
  return isSame ? size : 0;
}

async function receive(
  { api }: Context,
  node: NodeReply,
  part: string,
  begun: number,
  move: (done: number) => void,
): Promise<void> {
  const handle = await open(part, 'a', 0o666);
  try {
    if (begun === node.size) return;
    const headers: Record<string, string> =
      begun > 0 ? { Range: `bytes=${begun}-`, 'If-Range': quoted(node.etag ?? '') } : {};
    const reply = await api.open('GET', pathOf`/v1/nodes/${node.id}/content`, { headers });
    let done = reply.status === 206 ? begun : 0;
    if (done === 0) await handle.truncate(0);
    for await (const chunk of api.bytesOf(reply)) {
      await handle.writeFile(chunk);
      done += chunk.length;
      move(done);
    }
  } finally {
    await handle.close();
  }
}

/** Some stores keep the quotation marks of an ETag, some do not. */
function quoted(etag: string): string {
  return etag.startsWith('"') ? etag : `"${etag}"`;
}

async function check(part: string, { sha256, size }: NodeReply): Promise<void> {
  const { size: received } = await stat(part);
  const isWhole = size === null || size === undefined || received === size;
  if (isWhole && (!sha256 || (await sha256Of(part)) === sha256)) return;
  await rm(part, { force: true });
  throw cliErrors.FILE_PROBLEM({
    path: part,
    reason: 'what arrived is not what is stored; it was removed, try again',
  });
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  const handle = await open(file, 'r');
  try {
    for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
  } finally {
    await handle.close();
  }
  return hash.digest('hex');
}

function tell({ out }: Context, node: NodeReply, place: string, file: string): void {
  const { size, sha256 } = node;
  if (out.isJson) out.jsonLine({ place: written(parsePlace(place)), file, size, sha256 });
  else out.say(`${safeLine(file)}  ${bytes(size)}`);
}

/** What would become of one file; nothing is written. */
async function tellPlan(
  { out, environment }: Context,
  { force = false }: DownloadFlags,
  { size }: NodeReply,
  place: string,
  file: string,
): Promise<void> {
  const isThere = (await stat(resolve(environment.folder, file)).catch(() => undefined)) !== undefined;
  const would = !isThere
    ? ''
    : force
      ? '; would be replaced'
      : '; is already there, and stays without --force';
  out.would({ place, file, size, isThere }, `${place} → ${file}  ${bytes(size)}${would}`);
}

function isDirectory({ environment }: Context, path: string): Promise<boolean> {
  return stat(resolve(environment.folder, path)).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
