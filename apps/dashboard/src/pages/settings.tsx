// Keys, webhooks and alerts.
import { useState } from 'preact/hooks';
import { at, call, enterWithFirstKey, get, may, session } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { AlertRow, Delivery, KeyRow, Page, Role, Webhook } from '../data/shapes.js';
import { Action, useWork } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Copy, Empty, Failure, Notice, Waiting } from '../parts/notice.js';
import { Facts, Mark, PageFrame, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Ago, At } from '../parts/time.js';
import { describeTarget } from '../targets.js';
import { unknown } from '../format.js';

export default function SettingsPage() {
  const own = session.value!;
  return (
    <PageFrame title="Settings">
      {own.via === 'open' && (
        <Notice tone="warn">
          There is no key yet: everybody on this machine may do everything. The first key must be an admin of
          the whole installation (<code>*</code>); from then on everybody signs in.
        </Notice>
      )}
      <Panel title="You">
        <Facts
          items={[
            ['Key', own.key?.name ?? 'none'],
            ['Tenant', own.installation ? '* (the whole installation)' : own.tenant],
            ['Role', own.role],
            ['Signed in until', own.expiresAt && <At at={own.expiresAt} />],
          ]}
        />
      </Panel>
      {may('admin') ? (
        <>
          <Keys />
          <Webhooks />
        </>
      ) : (
        <Empty title="Keys and webhooks are for admins" />
      )}
      {own.installation && <Alerts />}
    </PageFrame>
  );
}

function Keys() {
  const { data, error, again } = useAnswer('keys', (abort) =>
    get<Page<KeyRow>>('/v1/keys', { signal: abort }),
  );
  const [isOpen, setOpen] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const columns: Column<KeyRow>[] = [
    { title: 'Name', cell: ({ name }) => <strong class="wrap">{name}</strong> },
    { title: 'Tenant', cell: ({ tenant }) => tenant },
    { title: 'Role', cell: ({ role }) => role },
    { title: 'Id', cell: ({ id }) => <code>{id}</code> },
    { title: 'Made', number: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
    { title: 'Last used', number: true, cell: ({ usedAt }) => (usedAt ? <Ago at={usedAt} /> : 'never') },
    {
      title: 'State',
      tight: true,
      cell: ({ revokedAt, expiresAt, oldUntil }) =>
        revokedAt ? (
          <Mark>revoked</Mark>
        ) : expiresAt && Date.parse(expiresAt) < Date.now() ? (
          <Mark>expired</Mark>
        ) : oldUntil && Date.parse(oldUntil) > Date.now() ? (
          <Mark tone="warn">two texts</Mark>
        ) : (
          <Mark tone="ok">good</Mark>
        ),
    },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: ({ id, name, revokedAt }) =>
        !revokedAt && (
          <span class="row-actions">
            <Action
              small
              needs="admin"
              label={`Rotate ${name}`}
              confirm={{
                title: `Rotate ${name}?`,
                text: 'It gets another text; the present one stays good for a day.',
                button: 'Rotate',
              }}
              run={async () => {
                const made = await call<{ key: string }>('POST', `${at('v1', 'keys', id)}/rotate`, {
                  body: {},
                });
                setSecret(made.key);
                return undefined;
              }}
              onDone={again}
            >
              Rotate
            </Action>
            <Action
              small
              needs="admin"
              tone="danger"
              label={`Revoke ${name}`}
              confirm={{
                title: `Revoke ${name}?`,
                text: 'Within five seconds it opens nothing any more.',
                button: 'Revoke',
              }}
              run={async () => {
                await call('DELETE', at('v1', 'keys', id));
                return `${name} is revoked.`;
              }}
              onDone={again}
            >
              Revoke
            </Action>
          </span>
        ),
    },
  ];
  return (
    <Panel
      title="Keys"
      flush
      actions={
        <button class="button small primary" type="button" onClick={() => setOpen(true)}>
          New key
        </button>
      }
    >
      {error !== undefined ? (
        <Failure error={error} again={again} />
      ) : !data ? (
        <Waiting />
      ) : data.items.length === 0 ? (
        <Empty title="No keys" command="sluice keys create --name ops --role admin --tenant '*'">
          The same can be done in a terminal:
        </Empty>
      ) : (
        <Table label="Keys" rows={data.items} keyOf={({ id }) => id} columns={columns} />
      )}
      {isOpen && (
        <NewKey
          onClose={() => setOpen(false)}
          onMade={(key) => {
            setOpen(false);
            setSecret(key);
            again();
          }}
        />
      )}
      {secret !== null && <Secret title="The key" text={secret} onClose={() => setSecret(null)} />}
    </Panel>
  );
}

function Secret({ title, text, onClose }: { title: string; text: string; onClose: () => void }) {
  return (
    <Dialog title={title} narrow onClose={onClose}>
      <p>It is shown this once. Keep it where secrets are kept.</p>
      <code class="secret">{text}</code>
      <Copy text={text} what="secret" />
    </Dialog>
  );
}

function NewKey({ onClose, onMade }: { onClose: () => void; onMade: (key: string) => void }) {
  const own = session.value!;
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>(own.via === 'open' ? 'admin' : 'viewer');
  const [tenant, setTenant] = useState(own.installation ? '*' : own.tenant);
  const { busy, start } = useWork(async () => {
    const make = async (): Promise<string> =>
      (await call<{ key: string }>('POST', '/v1/keys', { body: { name, role, tenant } })).key;
    onMade(await (own.via === 'open' ? enterWithFirstKey(make) : make()));
    return undefined;
  });
  return (
    <Dialog
      title="New key"
      narrow
      onClose={onClose}
      foot={
        <button
          class="button primary"
          type="button"
          disabled={busy || name === '' || tenant === ''}
          aria-busy={busy}
          onClick={start}
        >
          Make it
        </button>
      }
    >
      <label class="field">
        Name
        <input
          value={name}
          maxLength={100}
          placeholder="who or what it is for"
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        Role
        <select value={role} onChange={(event) => setRole(event.currentTarget.value as Role)}>
          <option value="viewer">viewer: sees</option>
          <option value="operator">operator: acts on jobs and files</option>
          <option value="admin">admin: makes keys, too</option>
        </select>
      </label>
      <label class="field">
        Tenant
        <input
          value={tenant}
          disabled={!own.installation}
          onInput={(event) => setTenant(event.currentTarget.value)}
        />
        <span class="hint">* is the whole installation</span>
      </label>
    </Dialog>
  );
}

function Webhooks() {
  const { data, error, again } = useAnswer('webhooks', (abort) =>
    get<Page<Webhook>>('/v1/webhooks', { signal: abort }),
  );
  const [isOpen, setOpen] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [shown, setShown] = useState<Webhook | null>(null);
  const columns: Column<Webhook>[] = [
    { title: 'Address', cell: ({ url }) => <span class="wrap">{url}</span> },
    { title: 'Told of', cell: ({ topics }) => (topics ?? []).join(', ') },
    {
      title: 'State',
      tight: true,
      cell: ({ active }) => (active === false ? <Mark>off</Mark> : <Mark tone="ok">on</Mark>),
    },
    { title: 'Made', number: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: (hook) => (
        <span class="row-actions">
          <button class="button small" type="button" onClick={() => setShown(hook)}>
            Deliveries
          </button>
          <Action
            small
            needs="admin"
            label={`Test ${hook.url}`}
            run={async () => {
              await call('POST', `${at('v1', 'webhooks', hook.id)}/test`);
              return 'On its way; see the deliveries.';
            }}
          >
            Test
          </Action>
          <Action
            small
            needs="admin"
            label={`${hook.active === false ? 'On' : 'Off'}: ${hook.url}`}
            run={async () => {
              await call('PATCH', at('v1', 'webhooks', hook.id), { body: { active: hook.active === false } });
              return hook.active === false ? 'It is told again.' : 'It is told nothing any more.';
            }}
            onDone={again}
          >
            {hook.active === false ? 'On' : 'Off'}
          </Action>
          <Action
            small
            needs="admin"
            tone="danger"
            label={`Delete ${hook.url}`}
            confirm={{
              title: 'Delete this webhook?',
              text: 'What waits for it is not delivered any more.',
              button: 'Delete',
            }}
            run={async () => {
              await call('DELETE', at('v1', 'webhooks', hook.id));
              return 'It is deleted.';
            }}
            onDone={again}
          >
            Delete
          </Action>
        </span>
      ),
    },
  ];
  return (
    <Panel
      title="Webhooks"
      flush
      actions={
        <button class="button small primary" type="button" onClick={() => setOpen(true)}>
          New webhook
        </button>
      }
    >
      {error !== undefined ? (
        <Failure error={error} again={again} />
      ) : !data ? (
        <Waiting />
      ) : data.items.length === 0 ? (
        <Empty title="Nobody is told">
          A webhook gets what happens to jobs and files as signed requests, retried until they arrive.
        </Empty>
      ) : (
        <Table label="Webhooks" rows={data.items} keyOf={({ id }) => id} columns={columns} />
      )}
      {isOpen && (
        <NewWebhook
          onClose={() => setOpen(false)}
          onMade={(made) => {
            setOpen(false);
            setSecret(made);
            again();
          }}
        />
      )}
      {secret !== null && (
        <Secret title="The secret that signs" text={secret} onClose={() => setSecret(null)} />
      )}
      {shown && <Deliveries hook={shown} onClose={() => setShown(null)} />}
    </Panel>
  );
}

function NewWebhook({ onClose, onMade }: { onClose: () => void; onMade: (secret: string) => void }) {
  const [url, setUrl] = useState('https://');
  const [topics, setTopics] = useState('');
  const { busy, start } = useWork(async () => {
    const body = { url, topics: topics.split(/[\s,]+/).filter(Boolean) };
    const made = await call<{ secret: string }>('POST', '/v1/webhooks', { body });
    onMade(made.secret);
    return undefined;
  });
  return (
    <Dialog
      title="New webhook"
      narrow
      onClose={onClose}
      foot={
        <button
          class="button primary"
          type="button"
          disabled={busy || topics.trim() === ''}
          aria-busy={busy}
          onClick={start}
        >
          Make it
        </button>
      }
    >
      <label class="field">
        Address
        <input type="url" value={url} onInput={(event) => setUrl(event.currentTarget.value)} />
      </label>
      <label class="field">
        Topics
        <input
          value={topics}
          placeholder="job.dead upload.completed"
          onInput={(event) => setTopics(event.currentTarget.value)}
        />
        <span class="hint">with spaces between them</span>
      </label>
    </Dialog>
  );
}

function Deliveries({ hook, onClose }: { hook: Webhook; onClose: () => void }) {
  const { data, error, again } = useAnswer(
    `deliveries ${hook.id}`,
    (abort) => get<Page<Delivery>>(`${at('v1', 'webhooks', hook.id)}/deliveries`, { signal: abort }),
    3_000,
  );
  return (
    <Dialog title={`Deliveries to ${hook.url}`} onClose={onClose}>
      {error !== undefined && <Failure error={error} again={again} />}
      {!data && error === undefined && <Waiting />}
      {data && data.items.length === 0 && (
        <Empty title="Nothing was delivered yet">“Test” sends an event that tells of nothing.</Empty>
      )}
      {data && data.items.length > 0 && (
        <Table
          label="Deliveries"
          rows={data.items}
          keyOf={({ id }) => id}
          columns={[
            { title: 'Topic', cell: ({ topic }) => topic ?? '' },
            {
              title: 'State',
              cell: ({ state }) => (
                <Mark tone={state === 'delivered' ? 'ok' : state === 'dead' ? 'bad' : 'warn'}>
                  {state ?? unknown}
                </Mark>
              ),
            },
            { title: 'Status', number: true, cell: ({ status }) => status ?? '' },
            { title: 'Attempt', number: true, cell: ({ attempt }) => attempt ?? '' },
            {
              title: 'Problem',
              cell: ({ error: problem }) => <span class="text-bad wrap">{problem ?? ''}</span>,
            },
            { title: 'When', number: true, cell: ({ at: when }) => <Ago at={when} /> },
          ]}
        />
      )}
    </Dialog>
  );
}

function Alerts() {
  const { data, error, again } = useAnswer(
    'alerts',
    (abort) => get<{ items: AlertRow[] }>('/v1/alerts', { signal: abort }),
    15_000,
  );
  return (
    <Panel title="Alerts" note="told to webhooks when they are crossed for a while" flush>
      {error !== undefined ? (
        <Failure error={error} again={again} />
      ) : !data ? (
        <Waiting />
      ) : (
        <Table label="Alerts" rows={data.items} keyOf={({ name }) => name} columns={alertColumns} />
      )}
    </Panel>
  );
}

const alertColumns: Column<AlertRow>[] = [
  { title: 'Alert', cell: (row) => <strong>{describeTarget(row).title}</strong> },
  { title: 'Should be', cell: (row) => describeTarget(row).goal },
  { title: 'Is', number: true, cell: (row) => describeTarget(row).now },
  {
    title: 'State',
    tight: true,
    cell: ({ met, state }) => <Mark tone={met === false ? 'bad' : 'ok'}>{state}</Mark>,
  },
  { title: 'Since', number: true, cell: ({ since }) => <Ago at={since} /> },
  { title: 'About', cut: true, cell: ({ about }) => <span title={about}>{about}</span> },
];
