// Webhooks: who is told of what; make one, try it, give it another secret, switch it off, delete it. A key of the installation sees those of the
// whole installation, which are told of alerts, and those of one tenant.
import { useState } from 'preact/hooks';
import { at, call, get, mayChooseTenant, session } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { whole, type Whole } from '../data/whole.js';
import type { Page, Webhook } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Answered } from '../parts/answered.js';
import { Field } from '../parts/field.js';
import { Empty } from '../parts/notice.js';
import { Mark } from '../parts/panel.js';
import { useFirst } from '../parts/pager.js';
import { Table, type Column } from '../parts/table.js';
import { TenantField, chosenTenant } from '../parts/tenantField.js';
import { Ago } from '../parts/time.js';
import { Deliveries } from './deliveries.js';
import { Draft, MadePanel, type Reveal } from './made.js';
import { everything, scope } from './scope.js';

/** So many pages of a hundred are read, and the list says if there are more. */
const mostPages = 10;
const shownHooks = 50;

function allHooks(tenant: string, abort: AbortSignal): Promise<Whole<Webhook>> {
  const { query, ...whose } = scope(tenant);
  return whole(mostPages, (after) =>
    get<Page<Webhook>>('/v1/webhooks', { ...whose, query: { ...query, after }, signal: abort }),
  );
}

export function Webhooks() {
  const tenant = chosenTenant();
  const scopes = session.value?.installation ? [everything, tenant] : [tenant];
  const hooks = useAnswer(`webhooks ${scopes.join(' ')}`, async (abort) => {
    const found = await Promise.all(scopes.map((whose) => allHooks(whose, abort)));
    return { items: found.flatMap(({ items }) => items), isAll: found.every(({ isAll }) => isAll) };
  });
  const { first, foot } = useFirst(hooks.data?.items ?? [], 'webhooks', shownHooks);
  const [shown, setShown] = useState<Webhook | null>(null);
  return (
    <MadePanel
      title="Webhooks"
      one="webhook"
      secretTitle="The secret that signs"
      onMade={hooks.again}
      draft={(made, close) => <NewWebhook tenant={tenant} onMade={made} onClose={close} />}
    >
      {(reveal) => (
        <>
          {mayChooseTenant() && (
            <div class="body filters">
              <TenantField />
            </div>
          )}
          <Answered answer={hooks}>
            {({ items, isAll }) =>
              items.length === 0 ? (
                <Empty title="Nobody is told">
                  A webhook is told of jobs, files and crossed alerts in signed requests, retried until they
                  arrive. “New webhook” makes one.
                </Empty>
              ) : (
                <>
                  <Table
                    label="Webhooks"
                    rows={first}
                    keyOf={({ id }) => id}
                    columns={columnsFor(reveal, setShown, hooks.again)}
                  />
                  {(foot || !isAll) && <footer>{foot ?? 'There are more webhooks than were read.'}</footer>}
                </>
              )
            }
          </Answered>
          {shown && <Deliveries hook={shown} onClose={() => setShown(null)} />}
        </>
      )}
    </MadePanel>
  );
}

function columnsFor(reveal: Reveal, show: (hook: Webhook) => void, onDone: () => void): Column<Webhook>[] {
  return [
    { title: 'Address', cell: ({ url }) => <span class="wrap">{url}</span> },
    {
      title: 'Of',
      name: true,
      cell: ({ tenant }) => (tenant === everything ? 'the whole installation' : (tenant ?? '')),
    },
    {
      title: 'Told of',
      wide: true,
      cell: ({ topics }) => <span class="wrap">{(topics ?? []).join(', ')}</span>,
    },
    {
      title: 'State',
      tight: true,
      cell: ({ active, secrets = 1 }) =>
        active === false ? (
          <Mark>off</Mark>
        ) : secrets > 1 ? (
          <Mark tone="warn">two secrets</Mark>
        ) : (
          <span class="soft">on</span>
        ),
    },
    { title: 'Made', number: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: (hook) => <HookActions hook={hook} reveal={reveal} show={show} onDone={onDone} />,
    },
  ];
}

function HookActions(props: {
  hook: Webhook;
  reveal: Reveal;
  show: (hook: Webhook) => void;
  onDone: () => void;
}) {
  const { hook, onDone } = props;
  const path = at('v1', 'webhooks', hook.id);
  const whose = scope(hook.tenant);
  const isOff = hook.active === false;
  return (
    <span class="row-actions">
      <button
        class="button small"
        type="button"
        aria-label={`Deliveries to ${hook.url}`}
        onClick={() => props.show(hook)}
      >
        Deliveries
      </button>
      <Action
        small
        needs="admin"
        label={`Test ${hook.url}`}
        run={async () => {
          await call('POST', `${path}/test`, whose);
          return 'On its way; see the deliveries.';
        }}
      >
        Test
      </Action>
      <Action
        small
        needs="admin"
        label={`Rotate the secret of ${hook.url}`}
        confirm={{
          title: 'Another secret?',
          text: 'The present one signs beside it for a day.',
          button: 'Rotate',
        }}
        run={async () => {
          props.reveal(
            (await call<{ secret: string }>('POST', `${path}/rotate`, { ...whose, body: {} })).secret,
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
        label={`${isOff ? 'On' : 'Off'}: ${hook.url}`}
        run={async () => {
          await call('PATCH', path, { ...whose, body: { active: isOff } });
          return isOff ? 'It is told again.' : 'It is told nothing any more.';
        }}
        onDone={onDone}
      >
        {isOff ? 'On' : 'Off'}
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
          await call('DELETE', path, whose);
          return 'It is deleted.';
        }}
        onDone={onDone}
      >
        Delete
      </Action>
    </span>
  );
}

function NewWebhook(props: { tenant: string; onMade: Reveal; onClose: () => void }) {
  const own = session.value!;
  const [url, setUrl] = useState('https://');
  const [topics, setTopics] = useState('');
  const [whose, setWhose] = useState(own.installation ? everything : '');
  const make = async (): Promise<string> => {
    const body = { url, topics: topics.split(/[\s,]+/).filter(Boolean) };
    const options = { ...scope(whose === everything ? everything : props.tenant), body };
    return (await call<{ secret: string }>('POST', '/v1/webhooks', options)).secret;
  };
  return (
    <Draft
      title="New webhook"
      isReady={topics.trim() !== ''}
      make={make}
      onMade={props.onMade}
      onClose={props.onClose}
    >
      <Field label="Address" type="url" value={url} set={setUrl} />
      <Field
        label="Topics"
        value={topics}
        set={setTopics}
        placeholder={whose === everything ? 'sluice.alerts.* jobs.dead' : 'jobs.dead repository.documents.*'}
        hint="with spaces between them"
      />
      {own.installation && (
        <label class="field">
          Of
          <select value={whose} onChange={(event) => setWhose(event.currentTarget.value)}>
            <option value={everything}>the whole installation</option>
            <option value="">the tenant {props.tenant || own.tenant}</option>
          </select>
          <span class="hint">Alerts belong to the whole installation.</span>
        </label>
      )}
    </Draft>
  );
}
