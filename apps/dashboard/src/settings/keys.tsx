// Keys: who may come in, how far, and since when; make one, give it another text, take it away.
import { useState } from 'preact/hooks';
import { at, call, enterWithFirstKey, get, session } from '../data/api.js';
import type { KeyRow, Page, Role } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Field } from '../parts/field.js';
import { Empty } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { Mark } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { Draft, MadePanel, type Reveal } from './made.js';

export function Keys() {
  const keys = usePages<KeyRow>('keys', (cursor, abort) =>
    get<Page<KeyRow>>('/v1/keys', { query: { limit: 100, cursor }, signal: abort }),
  );
  return (
    <MadePanel
      title="Keys"
      one="key"
      secretTitle="The key"
      onMade={keys.again}
      draft={(made, close) => <NewKey onMade={made} onClose={close} />}
    >
      {(reveal) => (
        <Listing
          pages={keys}
          one="key"
          none={
            <Empty title="No key has been made" command="npx sluice keys create ops --for '*' --role admin">
              {session.value?.via === 'open' ? '' : 'Those of SLUICE_KEYS are not listed here. '}A key lets
              somebody in, as a viewer, an operator or an admin. “New key” makes one, and so does a terminal:
            </Empty>
          }
        >
          {(items) => (
            <Table
              label="Keys"
              rows={items}
              keyOf={({ id }) => id}
              columns={columnsFor(reveal, keys.again)}
            />
          )}
        </Listing>
      )}
    </MadePanel>
  );
}

function columnsFor(reveal: Reveal, onDone: () => void): Column<KeyRow>[] {
  return [
    { title: 'Name', cell: ({ name }) => <strong class="wrap">{name}</strong> },
    { title: 'Tenant', name: true, cell: ({ tenant }) => tenant },
    { title: 'Role', cell: ({ role }) => role },
    { title: 'Id', cell: ({ id }) => <code>{id}</code> },
    { title: 'Made', number: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
    { title: 'Last used', number: true, cell: ({ usedAt }) => (usedAt ? <Ago at={usedAt} /> : 'never') },
    { title: 'State', tight: true, cell: (key) => <KeyState of={key} /> },
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
                reveal(
                  (await call<{ key: string }>('POST', `${at('v1', 'keys', id)}/rotate`, { body: {} })).key,
                );
                return undefined;
              }}
              onDone={onDone}
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
              onDone={onDone}
            >
              Revoke
            </Action>
          </span>
        ),
    },
  ];
}

function KeyState({ of: { revokedAt, expiresAt, oldUntil } }: { of: KeyRow }) {
  if (revokedAt) return <Mark>revoked</Mark>;
  if (expiresAt && Date.parse(expiresAt) < Date.now()) return <Mark>expired</Mark>;
  if (oldUntil && Date.parse(oldUntil) > Date.now()) return <Mark tone="warn">two texts</Mark>;
  return <span class="soft">good</span>;
}

function NewKey({ onMade, onClose }: { onMade: Reveal; onClose: () => void }) {
  const own = session.value!;
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>(own.via === 'open' ? 'admin' : 'viewer');
  const [tenant, setTenant] = useState(own.installation ? '*' : own.tenant);
  const make = async (): Promise<string> =>
    (await call<{ key: string }>('POST', '/v1/keys', { body: { name, role, tenant } })).key;
  return (
    <Draft
      title="New key"
      isReady={name !== '' && tenant !== ''}
      make={() => (own.via === 'open' ? enterWithFirstKey(make) : make())}
      onMade={onMade}
      onClose={onClose}
    >
      <Field label="Name" value={name} set={setName} maxLength={100} placeholder="who or what it is for" />
      <label class="field">
        Role
        <select value={role} onChange={(event) => setRole(event.currentTarget.value as Role)}>
          <option value="viewer">viewer: sees</option>
          <option value="operator">operator: acts on jobs and files</option>
          <option value="admin">admin: makes keys, too</option>
        </select>
      </label>
      <Field
        label="Tenant"
        value={tenant}
        set={setTenant}
        disabled={!own.installation}
        hint="* is the whole installation"
      />
    </Draft>
  );
}
