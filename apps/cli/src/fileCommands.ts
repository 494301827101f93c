// `sluice files` and `sluice drives`: what is stored, by its place.
import { pathOf } from './api.js';
import { declare, dryRunOption, group, listOptions, wishOf, yesOption } from './command.js';
import type { ListOptions, SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { cliErrors } from './errors.js';
import { bytes, counted, duration, moment } from './human.js';
import { parseSpan } from './parse.js';
import { findNode, needNode, nodesBelow, parseFile, parsePlace, written } from './place.js';
import type { NodeReply, Place } from './place.js';
import { safeLine } from './sanitise.js';
import { idsFrom } from './stdin.js';
import { readable, type Column } from './table.js';

interface Drive {
  id: string;
  name: string;
  createdAt: string;
}

const driveColumns: Column<Drive>[] = [
  { title: 'DRIVE', value: ({ name }) => name },
  { title: 'CREATED', value: ({ createdAt }) => moment(createdAt), spare: true },
  { title: 'ID', value: ({ id }) => id, spare: true },
];

const nodeColumns: Column<NodeReply>[] = [
  { title: 'SIZE', value: ({ type, size }) => (type === 'FOLDER' ? '–' : bytes(size)), align: 'right' },
  { title: 'CHANGED', value: ({ updatedAt }) => moment(updatedAt), spare: true },
  {
    title: 'NAME',
    value: ({ type, name }) => (type === 'FOLDER' ? `${name}/` : name),
    style: ({ type }) => (type === 'FOLDER' ? 'cyan' : undefined),
    cut: readable,
  },
  { title: 'STATUS', value: ({ status }) => status.toLowerCase(), spare: true },
  { title: 'ID', value: ({ id }) => id, spare: true },
];

export function fileCommands(program: SluiceCommand): void {
  const files = group(program, 'files', 'List, move, share and delete files and folders.')
    .example('files ls main/photos', 'what is in a folder')
    .example('files link main/film.mp4 --for 2h', 'an address with which anybody can download it')
    .example('files rm main/old -r', 'a folder with all that is in it');
  listFiles(files);
  removeFiles(files);
  moveFile(files);
  linkFile(files);
  makeFolder(files);
  driveCommands(program);
}

function listFiles(files: SluiceCommand): void {
  const command = declare(files, 'ls', 'What is in a folder; without one, the drives.')
    .argument('[place]', 'drive or drive/folder')
    .example('files ls', 'the drives')
    .example('files ls main', 'the top of a drive')
    .example('files ls main/photos --all --json | jq -r .id', 'the ids of all');
  listOptions(command).runs(async (context, flags: ListOptions, text?: string) => {
    if (text === undefined) return listDrives(context);
    const place = parsePlace(text);
    const node = place.path === '' ? undefined : await needNode(context.api, place);
    if (node?.type === 'FILE') return context.out.one(node, () => context.out.table(nodeColumns, [node]));
    const names = { items: 'nodes', cursor: 'after', largestPage: 1_000 };
    const query = { drive: place.drive, parent: node?.id };
    await context.show(nodeColumns, context.api.list<NodeReply>('/v1/nodes', query, wishOf(flags), names));
  });
}

function removeFiles(files: SluiceCommand): void {
  declare(files, 'rm', 'Delete files; folders with --recursive.')
    .argument('<place...>', 'drive/file or drive/folder; - reads them from stdin')
    .example('files rm main/draft.txt', 'asks first')
    .example('files rm main/old --recursive --dry-run', 'what would go')
    .example('sluice files rm - --yes < places.txt', 'those that a file names')
    .option('-r, --recursive', 'folders with all that is in them')
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async (context, flags: ChangeOptions & { recursive?: boolean }, given: string[]) => {
      const { api, out } = context;
      const places = (await idsFrom(given, context.stdin)).map(parseFile);
      const nodes: { place: Place; node: NodeReply }[] = [];
      for (const place of places) nodes.push({ place, node: await needNode(api, place) });
      const folder = nodes.find(({ node }) => node.type === 'FOLDER');
      if (folder && !flags.recursive)
        throw cliErrors.USAGE({ reason: `${written(folder.place)} is a folder; add --recursive` });
      if (flags.dryRun) return showDoomed(context, nodes);
      await context.confirm(`Delete ${listOf(nodes.map(({ place }) => written(place)))}?`);
      for (const { place, node } of nodes) {
        const query = { recursive: node.type === 'FOLDER' };
        const { deleted } = await api.ask<{ deleted: number }>('DELETE', pathOf`/v1/nodes/${node.id}`, {
          query,
        });
        out.did({ place: written(place), id: node.id, deleted }, `deleted ${written(place)}`);
      }
    });
}

async function showDoomed({ api, out }: Context, nodes: { place: Place; node: NodeReply }[]): Promise<void> {
  let [all, size] = [0, 0];
  for (const { place, node } of nodes) {
    const below = node.type === 'FOLDER' ? nodesBelow(api, place.drive, node.id) : [];
    const tell = (doomed: NodeReply): void => {
      [all, size] = [all + 1, size + (doomed.size ?? 0)];
      if (out.isJson) out.jsonLine(doomed);
      else out.line(safeLine(`${place.drive}/${doomed.path}${doomed.type === 'FOLDER' ? '/' : ''}`));
    };
    tell(node);
    for await (const doomed of below) tell(doomed);
  }
  out.say(`${counted(all, 'node')}, ${bytes(size)}; nothing was deleted`);
}

function moveFile(files: SluiceCommand): void {
  declare(files, 'mv', 'Rename a file or folder, or move it to another folder of its drive.')
    .argument('<from>', 'drive/file')
    .argument('<to>', 'drive/folder/ or drive/new-name')
    .example('files mv main/a.txt main/b.txt', 'rename')
    .example('files mv main/a.txt main/archive/', 'into a folder')
    .option(...dryRunOption)
    .runs(async (context, { dryRun }: ChangeOptions, fromText: string, toText: string) => {
      const [from, to] = [parseFile(fromText), parsePlace(toText)];
      if (from.drive !== to.drive)
        throw cliErrors.USAGE({ reason: 'a file stays in its drive; download and upload it to change that' });
      const { api } = context;
      const node = await needNode(api, from);
      const target = to.path === '' ? undefined : await findNode(api, to);
      const isInto = to.path === '' || toText.endsWith('/') || target?.type === 'FOLDER';
      const folderPath = isInto ? to.path : to.path.split('/').slice(0, -1).join('/');
      const name = isInto ? node.name : to.path.split('/').at(-1)!;
      const place = { drive: to.drive, path: folderPath };
      const folder = folderPath === '' ? undefined : await findNode(api, place);
      if (folderPath !== '' && !folder)
        throw cliErrors.NOT_FOUND({ what: written(place), make: `sluice files mkdir ${written(place)}` });
      const change = { name, parentId: folder?.id ?? null };
      if (dryRun) {
        const path = `${to.drive}/${folder ? `${folder.path}/` : ''}${name}`;
        return context.out.would({ id: node.id, ...change }, `${written(from)} → ${path}: would be moved`);
      }
      const moved = await api.ask<NodeReply>('PATCH', pathOf`/v1/nodes/${node.id}`, { body: change });
      context.out.did(moved, `${written(from)} → ${to.drive}/${moved.path}`);
    });
}

function linkFile(files: SluiceCommand): void {
  declare(files, 'link', 'Make an address with which anybody can download a file for a while.')
    .argument('<place>', 'drive/file')
    .example('files link main/film.mp4', 'for an hour')
    .example('files link main/film.mp4 --for 7d --attachment', 'for a week; browsers save it')
    .option('--for <span>', 'how long it is valid, at most 7d', parseSpan)
    .option('--attachment', 'browsers save it instead of showing it')
    .runs(async (context, flags: { for?: number; attachment?: boolean }, text: string) => {
      const { drive, path } = parseFile(text);
      const link = await context.api.post<{ url: string; expiresAt: string }>('/v1/links', {
        drive,
        path,
        ...(flags.for !== undefined && { expiresInS: Math.max(1, Math.round(flags.for / 1_000)) }),
        ...(flags.attachment && { disposition: 'attachment' }),
      });
      // A server that does not know how it is reached answers with a path only.
      const url = link.url.startsWith('/') ? context.api.url + link.url : link.url;
      context.out.one({ ...link, url }, () => {
        context.out.line(safeLine(url));
        context.out.say(`valid for ${duration(Date.parse(link.expiresAt) - Date.now())}`);
      });
    });
}

function makeFolder(files: SluiceCommand): void {
  declare(files, 'mkdir', 'Make a folder, and those above it.')
    .argument('<place>', 'drive/folder')
    .example('files mkdir main/2026/spring', 'both folders')
    .option(...dryRunOption)
    .runs(async (context, { dryRun }: ChangeOptions, text: string) => {
      const place = parseFile(text);
      if (dryRun) {
        const would = (await findNode(context.api, place)) ? 'is there already' : 'would be made';
        return context.out.would({ ...place }, `${written(place)}: ${would}`);
      }
      const node = await context.api.post<NodeReply>('/v1/nodes', { ...place });
      context.out.did(node, `${written(place)} is there`);
    });
}

function driveCommands(program: SluiceCommand): void {
  const drives = group(program, 'drives', 'List, make and delete drives.')
    .example('drives ls', 'all of them')
    .example('drives create archive', 'a new one');
  declare(drives, 'ls', 'The drives.')
    .example('drives ls', 'all of them')
    .runs((context) => listDrives(context));
  declare(drives, 'create', 'Make a drive; the same again changes nothing.')
    .argument('<name>')
    .example('drives create archive', 'a new one')
    .option(...dryRunOption)
    .runs(async ({ api, out }, { dryRun }: ChangeOptions, name: string) => {
      if (dryRun) return out.would({ name }, `the drive ${name} would be there`);
      const drive = await api.ask<Drive>('PUT', pathOf`/v1/drives/${name}`);
      out.did(drive, `the drive ${drive.name} is there`);
    });
  declare(drives, 'rm', 'Delete an empty drive.')
    .argument('<name>')
    .example('drives rm archive --yes', 'without being asked')
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async (context, { dryRun }: ChangeOptions, name: string) => {
      if (dryRun) {
        await context.api.get(pathOf`/v1/drives/${name}`);
        const { nodes } = await context.api.get<{ nodes: unknown[] }>('/v1/nodes', { drive: name, limit: 1 });
        const would = nodes.length > 0 ? 'would stay, because it is not empty' : 'would be deleted';
        return context.out.would({ name, empty: nodes.length === 0 }, `the drive ${name} ${would}`);
      }
      await context.confirm(`Delete the drive ${name}?`);
      await context.api.ask('DELETE', pathOf`/v1/drives/${name}`);
      context.out.did({ name, deleted: true }, `deleted the drive ${name}`);
    });
}

async function listDrives(context: Context): Promise<void> {
  const names = { items: 'drives', cursor: 'after', largestPage: 1_000 };
  await context.show(driveColumns, context.api.list<Drive>('/v1/drives', {}, { limit: 0, all: true }, names));
}

function listOf(names: string[]): string {
  return names.length === 1
    ? names[0]!
    : `${counted(names.length, 'item')} (${names.slice(0, 3).join(', ')}…)`;
}
