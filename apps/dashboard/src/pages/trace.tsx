// One id through the whole flow: upload → file → events → jobs → results. Live, while something of it is under way.
import { useEffect, useState } from 'preact/hooks';
import { at, get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { JobState, Trace } from '../data/shapes.js';
import { Json } from '../parts/json.js';
import { Empty, Failure, Waiting } from '../parts/notice.js';
import { Facts, Mark, Meter, PageFrame, Panel } from '../parts/panel.js';
import { Progress } from '../parts/progress.js';
import { FileState, StateMark } from '../parts/states.js';
import { TenantField, chosenTenant } from '../parts/tenantField.js';
import { Ago } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { bytes, number, percent, spelled } from '../format.js';

/** The server looks through thousands of events and jobs for this: often only while that shows something new. */
const [underWayMs, quietMs] = [5_000, 30_000];

export default function TracePage() {
  const id = query.value.get('id') ?? '';
  const [draft, setDraft] = useState(id);
  // Another id may come from the search on top while this page is open.
  useEffect(() => setDraft(id), [id]);
  const tenant = chosenTenant();
  const [everyMs, setEveryMs] = useState(quietMs);
  const { data, error, again, busy } = useAnswer(
    id === '' ? null : `trace ${tenant} ${id}`,
    (abort) => get<Trace>(at('v1', 'trace', id), { signal: abort, tenant }),
    everyMs,
  );
  useEffect(() => setEveryMs(data && isUnderWay(data) ? underWayMs : quietMs), [data]);
  return (
    <PageFrame title="Trace" lead="One id through the whole flow">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          if (draft.trim() === id) again();
          else filter({ id: draft.trim() });
        }}
      >
        <label class="field grow">
          Id of an upload, a file, an event or a job
          <input
            class="mono"
            type="search"
            value={draft}
            onInput={(event) => setDraft(event.currentTarget.value)}
          />
        </label>
        <TenantField />
        <button class="button primary" type="submit">
          Follow
        </button>
      </form>
      {id === '' && (
        <Empty title="Which id?">Paste any: what came before it and what came of it is found from it.</Empty>
      )}
      {error !== undefined && <Failure error={error} again={again} />}
      {id !== '' && !data && error === undefined && busy && <Waiting what="Following" />}
      {data && (
        <>
          <Steps trace={data} />
          <OtherSteps trace={data} />
        </>
      )}
    </PageFrame>
  );
}

function isUnderWay({ upload, waitingEvents, jobs }: Trace): boolean {
  const isOpen = upload !== null && !upload.record?.endedAt;
  return isOpen || waitingEvents > 0 || jobs.some(({ state }) => !ended.includes(state));
}

const ended: readonly JobState[] = ['done', 'dead', 'cancelled'];
const knownSteps = ['id', 'kind', 'upload', 'node', 'events', 'waitingEvents', 'jobs', 'bounds'];

/** What a part that came later adds to the flow is shown with its name and its text, before this page knows it better. */
function OtherSteps({ trace }: { trace: Trace }) {
  const others = Object.entries(trace).filter(
    ([name, value]) => !knownSteps.includes(name) && value !== null && value !== undefined,
  );
  return (
    <>
      {others.map(([name, value]) => (
        <Panel key={name} title={spelled(name)}>
          <Json value={value} label={spelled(name)} />
        </Panel>
      ))}
    </>
  );
}

function Steps({ trace }: { trace: Trace }) {
  const { upload, node, events, jobs, bounds, waitingEvents } = trace;
  return (
    <ol class="stack step-list">
      <li>
        <Panel title="1 · Upload" note={trace.kind === 'upload' ? 'this id' : undefined}>
          {upload ? <Upload upload={upload} /> : <p class="soft">No upload is known for it.</p>}
        </Panel>
      </li>
      <li>
        <Panel title="2 · File" note={trace.kind === 'node' ? 'this id' : undefined}>
          {node ? (
            <Facts
              items={[
                ['Id', <code>{node.id}</code>],
                ['Path', node.path],
                ['State', <FileState status={node.status} />],
                ['Size', bytes(node.size)],
                ['Type', node.contentType],
                ['SHA-256', node.sha256 && <code>{node.sha256}</code>],
                ['Changed', <Ago at={node.updatedAt} />],
              ]}
            />
          ) : (
            <p class="soft">No file is known for it.</p>
          )}
        </Panel>
      </li>
      <li>
        <Panel
          title="3 · Events"
          note={`${number(bounds.events.scanned)} looked at${bounds.events.complete ? '' : ', older ones were not'}`}
        >
          {events.length === 0 && <p class="soft">None was found.</p>}
          {waitingEvents > 0 && <p>{waitingEvents} wait to be published.</p>}
          <ul class="stack">
            {events.map((event) => (
              <li key={event.cursor}>
                <details>
                  <summary>
                    {event.topic}{' '}
                    <span class="faint">
                      <Ago at={Number(event.cursor.split('-')[0])} />
                    </span>
                  </summary>
                  <Json value={event.data} label={event.topic} />
                </details>
              </li>
            ))}
          </ul>
        </Panel>
      </li>
      <li>
        <Panel
          title="4 · Jobs and results"
          note={`${number(bounds.jobs.scanned)} looked at${bounds.jobs.complete ? '' : ', not all of them'}`}
        >
          {jobs.length === 0 && (
            <p class="soft">
              None was found; jobs that are done are forgotten unless they keep their result.
            </p>
          )}
          <ul class="stack">
            {jobs.map((job) => (
              <li key={`${job.queue}/${job.id}`}>
                <StateMark state={job.state} />{' '}
                <a href={to('jobs', job.queue, job.id)}>
                  {job.queue} / {job.id}
                </a>{' '}
                {job.error && <span class="text-bad wrap">{job.error}</span>}
                <Progress progress={job.progress} label={`Progress of ${job.id}`} />
                {job.result !== undefined && job.result !== null && (
                  <Json value={job.result} label={`Result of ${job.id}`} />
                )}
              </li>
            ))}
          </ul>
        </Panel>
      </li>
    </ol>
  );
}

function Upload({ upload: { record, live } }: { upload: NonNullable<Trace['upload']> }) {
  const { id, path, createdAt } = (record ?? live)!;
  const isOpen = live !== null && !record?.endedAt;
  const state = isOpen ? live.state : record!.status;
  return (
    <Facts
      items={[
        ['Id', <code>{id}</code>],
        ['Path', path],
        ['State', <Mark tone={state === 'COMPLETED' ? 'ok' : 'neutral'}>{state.toLowerCase()}</Mark>],
        ['Received', isOpen ? <Received {...live} /> : undefined],
        ['Reason', record?.reason],
        ['Began', <Ago at={createdAt} />],
        ['Ended', record?.endedAt ? <Ago at={record.endedAt} /> : undefined],
      ]}
    />
  );
}

function Received({ receivedBytes, size }: { receivedBytes: number; size: number | null }) {
  if (size === null) return <>{bytes(receivedBytes)}</>;
  const part = size === 0 ? 1 : receivedBytes / size;
  return (
    <>
      {bytes(receivedBytes)} of {bytes(size)}, {percent(part)}
      <Meter part={part} label="Received" tone="accent" />
    </>
  );
}
