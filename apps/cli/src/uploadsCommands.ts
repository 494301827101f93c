// `sluice uploads`: those under way, and how one ended.
import { pathOf } from './api.js';
import { forEach } from './bulk.js';
import { stateStyle } from './colour.js';
import { declare, dryRunOption, group, listOptions, wishOf, yesOption } from './command.js';
import type { ListOptions, SluiceCommand } from './command.js';
import type { ChangeOptions, Context } from './context.js';
import { ago, bytes, counted, moment, percent } from './human.js';
import { idsFrom } from './stdin.js';
import { readable, type Column } from './table.js';

interface UploadRow {
  id: string;
  drive: string;
  path: string;
  state: string;
  size: number | null;
  receivedBytes: number;
  storedBytes: number;
  createdAt?: string;
  updatedAt?: string;
  nodeId?: string;
  error?: { code: string; message: string } | null;
  result?: { etag: string; sha256: string; version: number } | null;
  missing?: [number, number | null][];
}

const columns: Column<UploadRow>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATE', value: ({ state }) => state.toLowerCase(), style: ({ state }) => stateStyle(state) },
  { title: 'RECEIVED', value: ({ receivedBytes }) => bytes(receivedBytes), align: 'right' },
  { title: 'OF', value: ({ size }) => (size === null ? '?' : bytes(size)), align: 'right', spare: true },
  {
    title: 'SHARE',
    value: ({ size, receivedBytes }) => share(size, receivedBytes),
    align: 'right',
    spare: true,
  },
  {
    title: 'LAST',
    value: ({ updatedAt }) => (updatedAt ? ago(Date.parse(updatedAt)) : '–'),
    align: 'right',
    spare: true,
  },
  { title: 'PLACE', value: ({ drive, path }) => `${drive}/${path}`, cut: readable },
];

export function uploadsCommands(program: SluiceCommand): void {
  const uploads = group(program, 'uploads', 'Uploads that are under way, and how one ended.')
    .example('uploads ls', 'those under way')
    .example('uploads show 2Xk9', 'one of them, also after its end')
    .example('uploads cancel 2Xk9', 'what it left is removed');
  const list = declare(uploads, 'ls', 'Uploads that are under way.')
    .example('uploads ls', 'with their progress')
    .option('-s, --state <state>', 'in this state');
  listOptions(list).runs(({ api, show }, flags: ListOptions & { state?: string }) =>
    show(columns, api.list<UploadRow>('/v1/uploads', { state: flags.state?.toUpperCase() }, wishOf(flags))),
  );
  declare(uploads, 'show', 'One upload: what is there, what is missing, how it ended.')
    .argument('<id>')
    .example('uploads show 2Xk9', 'also long after its end')
    .runs(async ({ api, out }, _flags: object, id: string) => {
      const upload = await api.get<UploadRow>(pathOf`/v1/uploads/${id}`);
      out.one(upload, () => printUpload(out, upload));
    });
  declare(uploads, 'cancel', 'Cancel uploads; what they left is removed.')
    .argument('<id...>', 'ids; - reads them from stdin')
    .example('uploads cancel 2Xk9', 'asks first')
    .example('uploads ls --all --json | sluice uploads cancel - --yes', 'all that are under way')
    .option(...dryRunOption)
    .option(...yesOption)
    .runs(async (context, flags: ChangeOptions, given: string[]) => {
      const ids = await idsFrom(given, context.stdin);
      if (!flags.dryRun)
        await context.confirm(`Cancel ${ids.length === 1 ? ids[0]! : counted(ids.length, 'upload')}?`);
      await forEach(context, ids, flags, {
        look: (id) => context.api.get(pathOf`/v1/uploads/${id}`),
        change: (id) => context.api.ask<object>('DELETE', pathOf`/v1/uploads/${id}`),
        would: (id) => `${id}: would be cancelled`,
        did: (id) => `${id}: cancelled`,
      });
    });
}

function printUpload(out: Context['out'], upload: UploadRow): void {
  const { size, receivedBytes, error, result, missing = [] } = upload;
  out.pairs([
    ['upload', upload.id],
    ['place', `${upload.drive}/${upload.path}`],
    ['state', upload.state.toLowerCase()],
    [
      'received',
      `${bytes(receivedBytes)} of ${size === null ? 'an unknown size' : `${bytes(size)} (${share(size, receivedBytes)})`}`,
    ],
    ['stored', bytes(upload.storedBytes)],
    ['missing', missing.length > 0 ? counted(missing.length, 'range') : undefined],
    ['begun', upload.createdAt ? moment(upload.createdAt) : undefined],
    [
      'changed',
      upload.updatedAt ? `${moment(upload.updatedAt)} (${ago(Date.parse(upload.updatedAt))})` : undefined,
    ],
    ['node', upload.nodeId],
    ['etag', result?.etag],
    ['sha256', result?.sha256 || undefined],
    ['error', error ? `${error.code}: ${error.message}` : undefined],
  ]);
}

function share(size: number | null, received: number): string {
  return size === null ? '–' : percent(size === 0 ? 1 : received / size);
}
