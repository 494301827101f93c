// Drives and what is in them: folder by folder, live, with preview and download.
import { useState } from 'preact/hooks';
import { makeDrive, sendFile } from '../commands.js';
import { at, call, get, may, mayChooseTenant, tenantHeader } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { drivesOf, type Whole } from '../data/whole.js';
import type { Drive, FileNode } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Field } from '../parts/field.js';
import { Text } from '../parts/json.js';
import { Copy, Empty, Failure, Waiting } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { Facts, PageFrame, Panel } from '../parts/panel.js';
import { FileState } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { TenantField, chosenTenant } from '../parts/tenantField.js';
import { Ago, At } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { bytes, number } from '../format.js';

const everyMs = 5_000;
const previewBytes = 64 * 1_024;
const linkSeconds = 300;
const fewDrives = 12;

export default function FilesPage() {
  const tenant = chosenTenant();
  const drives = useAnswer(`drives ${tenant}`, (abort) => drivesOf(tenant, abort), everyMs);
  const drive = query.value.get('drive') ?? drives.data?.items[0]?.name ?? '';
  const folder = query.value.get('folder') ?? '';
  const file = query.value.get('file') ?? '';
  const parent = useAnswer(
    folder === '' ? null : `node ${tenant} ${folder}`,
    (abort) => get<FileNode>(at('v1', 'nodes', folder), { signal: abort, tenant }),
    everyMs,
  );
  const pages = usePages<FileNode>(
    drive === '' ? null : `nodes ${tenant} ${drive} ${folder}`,
    async (after, abort) => {
      const { nodes, next } = await get<{ nodes: FileNode[]; next: string | null }>('/v1/nodes', {
        query: { drive, parent: folder, after },
        tenant,
        signal: abort,
      });
      return { items: nodes, next };
    },
    everyMs,
  );
  return (
    <PageFrame
      title="Files"
      crumbs={
        parent.data && (
          <>
            <a href={to('files', { tenant, drive })}>{drive}</a> / {parent.data.path.split('/').join(' / ')}
          </>
        )
      }
      actions={
        <a class="button" href={to('uploads', { tenant })}>
          Send files
        </a>
      }
    >
      {mayChooseTenant() && (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <TenantField drop={['drive', 'folder', 'file']} />
        </form>
      )}
      {drives.error !== undefined && <Failure error={drives.error} again={drives.again} />}
      {drives.data && drives.data.items.length > 1 && (
        <Drives tenant={tenant} drive={drive} known={drives.data} />
      )}
      <div class="columns">
        <div class={file === '' ? 'full' : 'two-thirds'}>
          <Panel
            title={parent.data?.name ?? (drive === '' ? 'Drives' : `Drive ${drive}`)}
            flush
            actions={
              folder !== '' && (
                <a
                  class="button small"
                  href={to('files', { tenant, drive, folder: parent.data?.parentId ?? '' })}
                >
                  Up
                </a>
              )
            }
          >
            {drives.data?.items.length === 0 ? (
              <Empty title="There is no drive" command={makeDrive()}>
                Files are kept on drives. This makes one:
              </Empty>
            ) : drive === '' && drives.error !== undefined ? (
              <Empty title="Not read" />
            ) : (
              <Listing
                pages={pages}
                one="entry"
                many="entries"
                none={
                  <Empty title="Nothing is here" command={sendFile(drive)}>
                    Send a file from the page of uploads, or from a terminal:
                  </Empty>
                }
              >
                {(rows) => (
                  <Table
                    label={`Entries of ${drive}`}
                    rows={rows}
                    keyOf={({ id }) => id}
                    isChosen={({ id }) => id === file}
                    columns={columnsFor({ tenant, drive, folder, file }, pages.again)}
                  />
                )}
              </Listing>
            )}
          </Panel>
        </div>
        {file !== '' && (
          <div class="third">
            <FilePanel key={`${tenant} ${file}`} id={file} tenant={tenant} />
          </div>
        )}
      </div>
    </PageFrame>
  );
}

/** Few drives stand beside each other; more are found by their name. */
function Drives({ tenant, drive, known }: { tenant: string; drive: string; known: Whole<Drive> }) {
  const names = known.items.map(({ name }) => name);
  if (known.isAll && names.length <= fewDrives)
    return (
      <nav class="tabs" aria-label="Drives">
        {names.map((name) => (
          <a
            key={name}
            href={to('files', { tenant, drive: name })}
            aria-current={name === drive ? 'true' : undefined}
            title={name}
          >
            {name}
          </a>
        ))}
      </nav>
    );
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <Field
        label="Drive"
        value={drive}
        offered={names}
        hint={`${number(names.length)} drives${known.isAll ? '' : ' are offered, there are more'}; write the name of one`}
        settle={(name) => filter({ drive: name.trim(), folder: '', file: '' })}
      />
    </form>
  );
}

function columnsFor(
  { tenant, drive, folder, file }: { tenant: string; drive: string; folder: string; file: string },
  onDone: () => void,
): Column<FileNode>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name, type }) =>
        type === 'FOLDER' ? (
          <a class="wrap" href={to('files', { tenant, drive, folder: id })}>
            {name}/
          </a>
        ) : (
          <a class="wrap" href={to('files', { tenant, drive, folder, file: id })}>
            {name}
          </a>
        ),
    },
    { title: 'Size', number: true, cell: ({ size, type }) => (type === 'FILE' ? bytes(size) : '') },
    { title: 'Type', name: true, cell: ({ contentType }) => contentType ?? '' },
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
          {type === 'FILE' && status === 'ACTIVE' && <Download tenant={tenant} id={id} name={name} />}
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
              await call('DELETE', at('v1', 'nodes', id), {
                query: { recursive: type === 'FOLDER' },
                tenant,
              });
              return `${name} is deleted.`;
            }}
            onDone={() => {
              // What was shown beside the list is no more.
              if (id === file) filter({ file: '' });
              onDone();
            }}
          >
            Delete
          </Action>
        </span>
      ),
    },
  ];
}

function FilePanel({ id, tenant }: { id: string; tenant: string }) {
  const {
    data: node,
    error,
    again,
  } = useAnswer(
    `file ${id}`,
    (abort) => get<FileNode>(at('v1', 'nodes', id), { signal: abort, tenant }),
    everyMs,
  );
  return (
    <Panel
      title={node?.name ?? 'File'}
      actions={
        <>
          {node?.type === 'FILE' && node.status === 'ACTIVE' && (
            <Download tenant={tenant} id={id} name={node.name} />
          )}
          <button class="button plain small" type="button" onClick={() => filter({ file: '' })}>
            Close
          </button>
        </>
      }
    >
      {error !== undefined && <Failure error={error} again={again} />}
      {node && (
        <div class="stack">
          {/* Other bytes are another file to look at. */}
          <Preview key={node.sha256 ?? node.updatedAt} node={node} tenant={tenant} />
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
              ['Flow', <a href={to('trace', { id: node.id, tenant })}>Follow this file</a>],
            ]}
          />
        </div>
      )}
    </Panel>
  );
}

/** A plain link cannot name a tenant: whoever chose one gets a signed link for a few minutes, and leaves by that. */
function Download({ tenant, id, name }: { tenant: string; id: string; name: string }) {
  if (tenant === '')
    return (
      <a class="button small" href={contentOf(id, 'attachment')} download={name} data-leave>
        Download
      </a>
    );
  return (
    <Action
      small
      label={`Download ${name}`}
      run={async () => {
        const link = document.createElement('a');
        link.href = await signedLink(id, 'attachment', tenant);
        link.download = name;
        link.dataset['leave'] = '';
        link.click();
        return undefined;
      }}
    >
      Download
    </Action>
  );
}

const pictures = /^image\/(?!svg)/;
const texts = /^(text\/|application\/(json|xml))/;
const players = /^(video|audio)\//;

/** Pictures, sound and films by the browser's own players; text as text; everything else is only offered for download. */
function Preview({ node, tenant }: { node: FileNode; tenant: string }) {
  const type = node.contentType ?? '';
  if (node.status !== 'ACTIVE') return <p class="soft">It cannot be shown here.</p>;
  // Of nothing there is no first byte to ask for.
  if (node.size === 0) return <p class="soft">The file is empty.</p>;
  if (texts.test(type)) return <TextPreview node={node} tenant={tenant} />;
  if (pictures.test(type) || players.test(type)) return <MediaPreview node={node} tenant={tenant} />;
  return <p class="soft">There is no preview of this type.</p>;
}

function MediaPreview({ node, tenant }: { node: FileNode; tenant: string }) {
  const [failed, setFailed] = useState(false);
  const type = node.contentType ?? '';
  const linked = useAnswer(tenant === '' || !may('operator') ? null : `link ${tenant} ${node.id}`, () =>
    signedLink(node.id, 'inline', tenant),
  );
  const address = tenant === '' ? contentOf(node.id, 'inline') : linked.data;
  if (failed || linked.error !== undefined || (tenant !== '' && !may('operator')))
    return <p class="soft">It cannot be shown here.</p>;
  if (address === undefined) return <Waiting />;
  const onError = (): void => setFailed(true);
  return (
    <div class="preview">
      {pictures.test(type) ? (
        <img src={address} alt={node.name} onError={onError} />
      ) : type.startsWith('video/') ? (
        <video src={address} controls onError={onError} />
      ) : (
        <audio src={address} controls onError={onError} />
      )}
    </div>
  );
}

function TextPreview({ node, tenant }: { node: FileNode; tenant: string }) {
  const { data, error } = useAnswer(`text ${tenant} ${node.id}`, async (abort) => {
    const response = await fetch(contentOf(node.id, 'inline'), {
      signal: abort,
      headers: { Range: `bytes=0-${previewBytes - 1}`, ...tenantHeader(tenant) },
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

/** As a place on this server, whatever name the server has for others: the policy of the page allows no other. */
async function signedLink(nodeId: string, disposition: string, tenant: string): Promise<string> {
  const body = { nodeId, disposition, expiresInS: linkSeconds };
  const { url } = await call<{ url: string }>('POST', '/v1/links', { body, tenant });
  return `${at('v1', 'nodes', nodeId)}/content${new URL(url, location.origin).search}`;
}
