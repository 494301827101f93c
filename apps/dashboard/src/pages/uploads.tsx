// Uploads under way, live: what has come, what is missing; cancel one, or send files from here.
import { useRef, useState } from 'preact/hooks';
import { at, call, get, may, messageOf } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { uploads as live } from '../data/live.js';
import type { Drive, UploadRow } from '../data/shapes.js';
import { forget, send, sendings, type Sending } from '../data/uploading.js';
import { Action } from '../parts/action.js';
import { Empty, Failure, Waiting } from '../parts/notice.js';
import { Mark, Meter, PageFrame, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { say } from '../parts/toast.js';
import { serverAddress, to } from '../place.js';
import { gapsOf } from '../ranges.js';
import { bytes, percent } from '../format.js';

const everyMs = 5_000;

export default function UploadsPage() {
  const first = useAnswer(
    live.value ? null : 'uploads',
    (abort) => get<{ items: UploadRow[] }>('/v1/uploads', { signal: abort }),
    everyMs,
  );
  const rows = live.value ?? first.data?.items;
  return (
    <PageFrame title="Uploads">
      <SendFiles />
      {first.error !== undefined && !rows && <Failure error={first.error} again={first.again} />}
      <Panel title="Under way" note={rows && rows.length > 0 ? `${rows.length}` : undefined} flush>
        {!rows ? (
          first.error === undefined && <Waiting />
        ) : rows.length === 0 ? (
          <Empty
            title="Nothing is being uploaded"
            command={`curl -T README.md ${serverAddress()}/v1/files/main/README.md`}
          >
            Drop files above, or send one from a terminal:
          </Empty>
        ) : (
          <Table label="Uploads under way" rows={rows} keyOf={({ id }) => id} columns={columns} />
        )}
      </Panel>
    </PageFrame>
  );
}

const columns: Column<UploadRow>[] = [
  {
    title: 'File',
    cell: ({ id, drive, path }) => (
      <a class="wrap" href={to('trace', { id })}>
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
  { title: 'Owner', cell: ({ owner, tenant }) => owner ?? tenant },
  { title: 'Began', number: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { title: 'Last byte', number: true, cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
  {
    title: 'Actions',
    quiet: true,
    tight: true,
    cell: ({ id, path }) => (
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
          await call('DELETE', at('v1', 'uploads', id));
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
  const label = `${gaps.length} missing ${gaps.length === 1 ? 'range' : 'ranges'}`;
  if (upload.size === null || upload.size === 0) return null;
  return (
    <div class="ranges" role="img" aria-label={label} title={label}>
      {gaps.map(({ from, to: end }) => (
        <span key={from} style={{ left: `${from * 100}%`, width: `${(end - from) * 100}%` }} />
      ))}
    </div>
  );
}

function SendFiles() {
  const drives = useAnswer('drives', (abort) => get<{ drives: Drive[] }>('/v1/drives', { signal: abort }));
  const [drive, setDrive] = useState('');
  const [folder, setFolder] = useState('');
  const [isOver, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const target = drive || drives.data?.drives[0]?.name || '';
  const take = async (files: readonly File[]): Promise<void> => {
    if (files.length === 0) return;
    // Whoever is quicker than the answer on drives must not hear that there are none.
    const onto = target || (await get<{ drives: Drive[] }>('/v1/drives')).drives[0]?.name;
    if (onto === undefined) say('There is no drive to put it on; make one under Files.', 'bad');
    else await send(files, onto, folder.replace(/^\/+|\/+$/g, ''));
  };
  const begin = (files: FileList | null | undefined): void => {
    take([...(files ?? [])]).catch((error: unknown) => say(messageOf(error), 'bad'));
  };
  const isAllowed = may('operator');
  return (
    <Panel
      title="Send files"
      actions={
        <>
          <label class="check">
            Drive
            <select value={target} onChange={(event) => setDrive(event.currentTarget.value)}>
              {drives.data?.drives.map(({ name }) => (
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
            {drives.data?.drives.length === 0
              ? 'There is no drive yet; Files says how to make one.'
              : 'Drop files here. They are sent in parts, verified, and go on after an interruption.'}
          </p>
          <button class="button" type="button" disabled={!isAllowed} onClick={() => chooser.current?.click()}>
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
  const isOver = ['done', 'failed', 'cancelled'].includes(state);
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
        {!isOver && (
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
        {isOver && (
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
