// Uploads under way, live: what has come, what is missing; cancel one, or send files from here.
import { useRef, useState } from 'preact/hooks';
import { sendFile } from '../commands.js';
import { at, call, get, may, mayChooseTenant, messageOf, session } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { serverNow, uploads as live } from '../data/live.js';
import type { Page, UploadRow } from '../data/shapes.js';
import { drivesOf } from '../data/whole.js';
import { forget, isOver, send, sendings, type Sending } from '../data/uploading.js';
import { Action } from '../parts/action.js';
import { Empty } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { Mark, Meter, PageFrame, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { TenantField, chosenTenant } from '../parts/tenantField.js';
import { Ago } from '../parts/time.js';
import { say } from '../parts/toast.js';
import { to } from '../place.js';
import { gapsOf } from '../ranges.js';
import { bytes, percent, plural } from '../format.js';

const everyMs = 5_000;
/** The stream brings the newest so many, of all tenants together; beyond that the list is asked for. */
const streamed = 100;
/** In words; the bar shows all. */
const namedGaps = 5;
/** Whoever sends, sends at least so often; from then on nobody seems to be there any more. */
const silentMs = 60_000;

export default function UploadsPage() {
  const tenant = chosenTenant();
  const now = live.value;
  const isAll = now !== null && now.length < streamed && session.value?.installation === true;
  const pages = usePages<UploadRow>(
    isAll ? null : 'uploads',
    (cursor, abort) =>
      get<Page<UploadRow>>('/v1/uploads', {
        query: { limit: streamed, cursor },
        signal: abort,
      }),
    everyMs,
  );
  const all = isAll ? now : pages.items && together(pages.items, now ?? []);
  const rows = all?.filter((upload) => tenant === '' || upload.tenant === tenant);
  return (
    <PageFrame title="Uploads">
      {mayChooseTenant() && (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <TenantField none="all" />
        </form>
      )}
      <SendFiles key={tenant} tenant={tenant} />
      <Panel title="Under way" flush>
        <Listing
          pages={pages}
          rows={rows}
          one="upload"
          isFiltered={tenant !== ''}
          none={
            <Empty title="Nothing is being uploaded" command={sendFile()}>
              Drop files above, or send one from a terminal:
            </Empty>
          }
        >
          {(shown) => (
            <Table label="Uploads under way" rows={shown} keyOf={({ id }) => id} columns={columns} />
          )}
        </Listing>
      </Panel>
    </PageFrame>
  );
}

/** Of an upload that both know, the stream knows more recent figures. */
function together(listed: readonly UploadRow[], now: readonly UploadRow[]): UploadRow[] {
  const newer = new Map(now.map((upload) => [upload.id, upload]));
  const known = new Set(listed.map(({ id }) => id));
  return [
    ...now.filter(({ id }) => !known.has(id)),
    ...listed.map((upload) => newer.get(upload.id) ?? upload),
  ];
}

const columns: Column<UploadRow>[] = [
  {
    title: 'File',
    cell: ({ id, drive, path, tenant }) => (
      <a class="wrap" href={to('trace', { id, tenant: mayChooseTenant() ? tenant : '' })}>
        {drive}/{path}
      </a>
    ),
  },
  { title: 'State', tight: true, cell: ({ state }) => <Mark tone="accent">{state.toLowerCase()}</Mark> },
  {
    title: 'Received',
    wide: true,
    cell: (upload) => (
      <>
        <span class="nowrap">
          {bytes(upload.receivedBytes)}
          {upload.size !== null &&
            ` of ${bytes(upload.size)}, ${percent(upload.size === 0 ? 1 : upload.receivedBytes / upload.size)}`}
        </span>
        <Ranges upload={upload} />
      </>
    ),
  },
  { title: 'Stored', number: true, cell: ({ storedBytes }) => bytes(storedBytes) },
  { title: 'Tenant', name: true, cell: ({ tenant }) => tenant },
  { title: 'Owner', name: true, cell: ({ owner }) => owner ?? '' },
  { title: 'Began', number: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
  {
    title: 'Last byte',
    number: true,
    cell: ({ state, updatedAt }) => {
      const isSilent = state === 'UPLOADING' && serverNow.value - Date.parse(updatedAt) > silentMs;
      return (
        <span class={isSilent ? 'text-warn' : ''}>
          <Ago at={updatedAt} />
        </span>
      );
    },
  },
  {
    title: 'Actions',
    quiet: true,
    tight: true,
    cell: ({ id, path, tenant }) => (
      <Action
        small
        tone="danger"
        label={`Cancel ${path}`}
        confirm={{
          title: 'Cancel this upload?',
          text: `What has come of ${path} is thrown away.`,
          button: 'Cancel it',
        }}
        run={async () => {
          await call('DELETE', at('v1', 'uploads', id), { tenant });
          return `${path} is cancelled.`;
        }}
      >
        Cancel
      </Action>
    ),
  },
];

function Ranges({ upload }: { upload: UploadRow }) {
  const gaps = gapsOf(upload.missing, upload.size);
  const { size } = upload;
  if (size === null || size === 0) return null;
  const named = gaps
    .slice(0, namedGaps)
    .map(({ from, to: end }) => `${bytes(from * size)} to ${end === 1 ? 'the end' : bytes(end * size)}`);
  const label = [
    plural(gaps.length, 'missing range'),
    named.length > 0 ? `: ${named.join(', ')}` : '',
    gaps.length > namedGaps ? ', …' : '',
  ].join('');
  return (
    <div class="ranges" role="img" aria-label={label} title={label}>
      {gaps.map(({ from, to: end }) => (
        <span key={from} style={{ left: `${from * 100}%`, width: `${(end - from) * 100}%` }} />
      ))}
    </div>
  );
}

function SendFiles({ tenant }: { tenant: string }) {
  const drives = useAnswer(`drives ${tenant}`, (abort) => drivesOf(tenant, abort));
  const [drive, setDrive] = useState('');
  const [folder, setFolder] = useState('');
  const [isOver, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const target = drive || drives.data?.items[0]?.name || '';
  const take = async (files: readonly File[]): Promise<void> => {
    if (files.length === 0) return;
    // Whoever is quicker than the answer on drives must not hear that there are none.
    const onto = target || (await drivesOf(tenant)).items[0]?.name;
    if (onto === undefined) say('There is no drive to put it on; make one under Files.', 'bad');
    else await send(files, onto, folder.replace(/^\/+|\/+$/g, ''), tenant);
  };
  const begin = (files: FileList | null | undefined): void => {
    take([...(files ?? [])]).catch((error: unknown) => say(messageOf(error), 'bad'));
  };
  const isAllowed = may('operator');
  const isNowhere = drives.data?.items.length === 0;
  return (
    <Panel
      title="Send files"
      actions={
        !isNowhere && (
          <>
            <label class="check">
              Drive
              <select value={target} onChange={(event) => setDrive(event.currentTarget.value)}>
                {drives.data?.items.map(({ name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
            <label class="check">
              Folder
              <input
                value={folder}
                placeholder="top"
                size={12}
                onInput={(event) => setFolder(event.currentTarget.value)}
              />
            </label>
          </>
        )
      }
    >
      <div class="stack">
        <div
          class={`drop ${isOver ? 'over' : ''}`}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            if (isAllowed) begin(event.dataTransfer?.files);
          }}
        >
          <p>
            {isNowhere ? (
              <>
                There is no drive yet; <a href="/files">Files</a> says how to make one.
              </>
            ) : (
              'Drop files here. They are sent in parts and verified. After an interruption they go on; after a reload, once the same file is chosen again.'
            )}
          </p>
          <button
            class="button"
            type="button"
            disabled={!isAllowed || isNowhere}
            onClick={() => chooser.current?.click()}
          >
            Choose files
          </button>
          <input
            ref={chooser}
            class="hidden"
            type="file"
            multiple
            tabIndex={-1}
            aria-label="Files to send"
            onChange={(event) => {
              begin(event.currentTarget.files);
              event.currentTarget.value = '';
            }}
          />
        </div>
        {sendings.value.length > 0 && (
          <ul class="stack">
            {sendings.value.map((sending) => (
              <SendingRow key={sending.number} sending={sending} />
            ))}
          </ul>
        )}
      </div>
    </Panel>
  );
}

function SendingRow({ sending }: { sending: Sending }) {
  const { name, progress, problem, task, number } = sending;
  const state = progress?.state ?? 'starting';
  return (
    <li>
      <div class="filters">
        <span class="field grow wrap">
          {sending.drive}/{name}
        </span>
        <Mark tone={state === 'done' ? 'ok' : state === 'failed' ? 'bad' : 'accent'}>{state}</Mark>
        <span class="nowrap">
          {bytes(progress?.ackedBytes ?? 0)} of {bytes(progress?.size)}
        </span>
        {!isOver(sending) && (
          <>
            <button
              class="button small"
              type="button"
              onClick={() => (state === 'paused' ? task?.resume() : task?.pause())}
            >
              {state === 'paused' ? 'Resume' : 'Pause'}
            </button>
            <button
              class="button small danger"
              type="button"
              onClick={() => void task?.cancel().catch(() => {})}
            >
              Cancel
            </button>
          </>
        )}
        {isOver(sending) && (
          <button class="button small plain" type="button" onClick={() => forget(number)}>
            Close
          </button>
        )}
      </div>
      <Meter
        part={(progress?.percent ?? 0) / 100}
        label={`Progress of ${name}`}
        tone={state === 'failed' ? 'bad' : 'accent'}
      />
      {problem && <p class="text-bad">{problem}</p>}
    </li>
  );
}
