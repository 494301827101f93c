// Drives and what is in them: folder by folder, with preview and download.
import { useState } from 'preact/hooks';
import { at, call, get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Drive, FileNode } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Text } from '../parts/json.js';
import { Copy, Empty, Failure, Waiting } from '../parts/notice.js';
import { More, usePages } from '../parts/pager.js';
import { Facts, PageFrame, Panel } from '../parts/panel.js';
import { FileState } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { Ago, At } from '../parts/time.js';
import { filter, query, serverAddress, to } from '../place.js';
import { bytes } from '../format.js';

const previewBytes = 64 * 1_024;

export default function FilesPage() {
  const drives = useAnswer('drives', (abort) => get<{ drives: Drive[] }>('/v1/drives', { signal: abort }));
  const drive = query.value.get('drive') ?? drives.data?.drives[0]?.name ?? '';
  const folder = query.value.get('folder') ?? '';
  const file = query.value.get('file') ?? '';
  const parent = useAnswer(folder === '' ? null : `node ${folder}`, (abort) =>
    get<FileNode>(at('v1', 'nodes', folder), { signal: abort }),
  );
  const pages = usePages<FileNode>(drive === '' ? null : `nodes ${drive} ${folder}`, async (after, abort) => {
    const { nodes, next } = await get<{ nodes: FileNode[]; next: string | null }>('/v1/nodes', {
      query: { drive, parent: folder, after },
      ...(abort && { signal: abort }),
    });
    return { items: nodes, next };
  });
  return (
    <PageFrame
      title="Files"
      crumbs={
        parent.data && (
          <>
            <a href={to('files', { drive })}>{drive}</a> / {parent.data.path.split('/').join(' / ')}
          </>
        )
      }
      actions={
        <a class="button" href="/uploads">
          Send files
        </a>
      }
    >
      {drives.error !== undefined && <Failure error={drives.error} again={drives.again} />}
      {(drives.data?.drives.length ?? 0) > 1 && (
        <nav class="tabs" aria-label="Drives">
          {drives.data?.drives.map(({ name }) => (
            <a
              key={name}
              href={to('files', { drive: name })}
              aria-current={name === drive ? 'true' : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      )}
      {pages.error !== undefined && <Failure error={pages.error} again={pages.again} />}
      <div class="columns">
        <div class={file === '' ? 'full' : 'two-thirds'}>
          <Panel
            title={parent.data?.name ?? (drive === '' ? 'Drives' : `Drive ${drive}`)}
            flush
            actions={
              folder !== '' && (
                <a class="button small" href={to('files', { drive, folder: parent.data?.parentId ?? '' })}>
                  Up
                </a>
              )
            }
            foot={pages.items && pages.items.length > 0 ? <More pages={pages} what="entries" /> : undefined}
          >
            {drives.data?.drives.length === 0 ? (
              <Empty title="There is no drive" command={`curl -X PUT ${serverAddress()}/v1/drives/main`}>
                Files are kept on drives. This makes one:
              </Empty>
            ) : pages.items === undefined ? (
              pages.error === undefined && <Waiting />
            ) : pages.items.length === 0 ? (
              <Empty
                title="Nothing is here"
                command={`curl -T README.md ${serverAddress()}/v1/files/${drive}/README.md`}
              >
                Send a file from the page of uploads, or from a terminal:
              </Empty>
            ) : (
              <Table
                label={`Entries of ${drive}`}
                rows={pages.items}
                keyOf={({ id }) => id}
                isChosen={({ id }) => id === file}
                columns={columnsFor(drive, folder, pages.again)}
              />
            )}
          </Panel>
        </div>
        {file !== '' && (
          <div class="third">
            <FilePanel key={file} id={file} />
          </div>
        )}
      </div>
    </PageFrame>
  );
}

function columnsFor(drive: string, folder: string, onDone: () => void): Column<FileNode>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name, type }) =>
        type === 'FOLDER' ? (
          <a class="wrap" href={to('files', { drive, folder: id })}>
            {name}/
          </a>
        ) : (
          <a class="wrap" href={to('files', { drive, folder, file: id })}>
            {name}
          </a>
        ),
    },
    { title: 'Size', number: true, cell: ({ size, type }) => (type === 'FILE' ? bytes(size) : '') },
    { title: 'Type', cell: ({ contentType }) => contentType ?? '' },
    {
      title: 'State',
      tight: true,
      cell: ({ status }) => <FileState status={status} />,
    },
    { title: 'Changed', number: true, cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: ({ id, name, type, status }) => (
        <span class="row-actions">
          {type === 'FILE' && status === 'ACTIVE' && (
            <a class="button small" href={contentOf(id, 'attachment')} download={name} data-leave>
              Download
            </a>
          )}
          <Action
            small
            tone="danger"
            label={`Delete ${name}`}
            confirm={{
              title: `Delete ${name}?`,
              text: type === 'FOLDER' ? 'The folder goes with all that is in it.' : 'The file goes for good.',
              button: 'Delete',
            }}
            run={async () => {
              await call('DELETE', at('v1', 'nodes', id), { query: { recursive: type === 'FOLDER' } });
              return `${name} is deleted.`;
            }}
            onDone={onDone}
          >
            Delete
          </Action>
        </span>
      ),
    },
  ];
}

function FilePanel({ id }: { id: string }) {
  const {
    data: node,
    error,
    again,
  } = useAnswer(`file ${id}`, (abort) => get<FileNode>(at('v1', 'nodes', id), { signal: abort }));
  return (
    <Panel
      title={node?.name ?? 'File'}
      actions={
        <button class="button plain small" type="button" onClick={() => filter({ file: '' })}>
          Close
        </button>
      }
    >
      {error !== undefined && <Failure error={error} again={again} />}
      {node && (
        <div class="stack">
          <Preview node={node} />
          <Facts
            items={[
              ['Path', node.path],
              ['Size', bytes(node.size)],
              ['Type', node.contentType],
              ['Changed', <At at={node.updatedAt} />],
              [
                'Id',
                <>
                  <code>{node.id}</code> <Copy text={node.id} what="id" />
                </>,
              ],
              ['SHA-256', node.sha256 && <code>{node.sha256}</code>],
              ['Flow', <a href={to('trace', { id: node.id })}>Follow this file</a>],
            ]}
          />
        </div>
      )}
    </Panel>
  );
}

/** Pictures, sound and films by the browser's own players; text as text; everything else is only offered for download. */
function Preview({ node }: { node: FileNode }) {
  const [failed, setFailed] = useState(false);
  const type = node.contentType ?? '';
  const address = contentOf(node.id, 'inline');
  if (failed || node.status !== 'ACTIVE') return <p class="soft">It cannot be shown here.</p>;
  if (/^image\/(?!svg)/.test(type))
    return (
      <div class="preview">
        <img src={address} alt={node.name} onError={() => setFailed(true)} />
      </div>
    );
  if (type.startsWith('video/'))
    return (
      <div class="preview">
        <video src={address} controls onError={() => setFailed(true)} />
      </div>
    );
  if (type.startsWith('audio/'))
    return (
      <div class="preview">
        <audio src={address} controls onError={() => setFailed(true)} />
      </div>
    );
  if (/^(text\/|application\/(json|xml))/.test(type)) return <TextPreview node={node} />;
  return <p class="soft">There is no preview of this type.</p>;
}

function TextPreview({ node }: { node: FileNode }) {
  const { data, error } = useAnswer(`text ${node.id}`, async (abort) => {
    const response = await fetch(contentOf(node.id, 'inline'), {
      signal: abort,
      headers: { Range: `bytes=0-${previewBytes - 1}` },
    });
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    return response.text();
  });
  if (error !== undefined) return <Failure error={error} />;
  if (data === undefined) return <Waiting />;
  return (
    <>
      <Text text={data} label={`Beginning of ${node.name}`} />
      {(node.size ?? 0) > previewBytes && <p class="faint">The first {bytes(previewBytes)}.</p>}
    </>
  );
}

function contentOf(id: string, disposition: string): string {
  return `${at('v1', 'nodes', id)}/content?disposition=${disposition}`;
}
