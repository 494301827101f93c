// Webhooks: who is told of what; make one, try it, give it another secret, switch it off, delete it.
import { useState } from 'preact/hooks';
import { at, call, get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Page, Webhook } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Answered } from '../parts/answered.js';
import { Field } from '../parts/field.js';
import { Empty } from '../parts/notice.js';
import { Mark } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { Deliveries } from './deliveries.js';
import { Draft, MadePanel, type Reveal } from './made.js';

export function Webhooks() {
  const hooks = useAnswer('webhooks', (abort) => get<Page<Webhook>>('/v1/webhooks', { signal: abort }));
  const [shown, setShown] = useState<Webhook | null>(null);
  return (
    <MadePanel
      title="Webhooks"
      one="webhook"
      secretTitle="The secret that signs"
      onMade={hooks.again}
      draft={(made, close) => <NewWebhook onMade={made} onClose={close} />}
    >
      {(reveal) => (
        <>
          <Answered answer={hooks}>
            {({ items }) =>
              items.length === 0 ? (
                <Empty title="Nobody is told">
                  A webhook is told of jobs, files and crossed alerts in signed requests, retried until they
                  arrive. “New webhook” makes one.
                </Empty>
              ) : (
                <Table
                  label="Webhooks"
                  rows={items}
                  keyOf={({ id }) => id}
                  columns={columnsFor(reveal, setShown, hooks.again)}
                />
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
          await call('POST', `${path}/test`);
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
          props.reveal((await call<{ secret: string }>('POST', `${path}/rotate`, { body: {} })).secret);
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
          await call('PATCH', path, { body: { active: isOff } });
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
          await call('DELETE', path);
          return 'It is deleted.';
        }}
        onDone={onDone}
      >
        Delete
      </Action>
    </span>
  );
}

function NewWebhook({ onMade, onClose }: { onMade: Reveal; onClose: () => void }) {
  const [url, setUrl] = useState('https://');
  const [topics, setTopics] = useState('');
  const make = async (): Promise<string> => {
    const body = { url, topics: topics.split(/[\s,]+/).filter(Boolean) };
    return (await call<{ secret: string }>('POST', '/v1/webhooks', { body })).secret;
  };
  return (
    <Draft title="New webhook" isReady={topics.trim() !== ''} make={make} onMade={onMade} onClose={onClose}>
      <Field label="Address" type="url" value={url} set={setUrl} />
      <Field
        label="Topics"
        value={topics}
        set={setTopics}
        placeholder="jobs.dead repository.documents.*"
        hint="with spaces between them"
      />
    </Draft>
  );
}
