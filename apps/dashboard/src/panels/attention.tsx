// What needs somebody, the worst first, each with what mends it beside it.
import { pauseQueue, resumeQueue } from '../data/actions.js';
import type { Attention, Overview } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Action } from '../parts/action.js';
import { BulkMove } from '../parts/bulkMove.js';
import { Mark, Panel } from '../parts/panel.js';
import { go, to } from '../place.js';
import { rank, troubleOf } from '../severity.js';
import { describeTarget } from '../targets.js';

const shown = 10;

export function AttentionPanel({ overview }: PanelProps) {
  const all = rank(overview.attention);
  const rest = all.length - shown;
  return (
    <Panel
      title="Needs attention"
      note={all.length === 0 ? undefined : `${all.length}`}
      flush
      foot={rest > 0 ? <a href="/queues">{rest} more, by queue</a> : undefined}
    >
      {all.length === 0 ? (
        <div class="body">
          <Mark tone="ok">all clear</Mark> <span class="soft">Nothing waits for you.</span>
        </div>
      ) : (
        <ul class="attention">
          {all.slice(0, shown).map((item) => (
            <li
              key={`${item.code} ${item.queue ?? item.target?.name ?? ''}`}
              class={troubleOf(item).severity}
              data-row
            >
              <SeverityMark item={item} />
              <span class="what wrap">
                {item.queue !== undefined && (
                  <>
                    <a href={to('queues', item.queue)}>{item.queue}</a>:{' '}
                  </>
                )}
                {wordsOf(item)} <span class="soft">{mostly(item, overview) ?? troubleOf(item).advice}</span>
              </span>
              <span class="row-actions">
                <Remedy item={item} isOwn={isOwn(item, overview)} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** A target is told in the words of this page, as the panel of targets tells it. */
function wordsOf({ code, message, target }: Attention): string {
  if (!target) return message;
  const { title, now, goal } = describeTarget(target);
  return `${title}: ${now}, ${code === 'TARGET_CLOSE' ? 'only just' : 'should be'} ${goal}.`;
}

/** Of dead letters, what most of them died of: whoever knows that often knows whether to replay them. */
function mostly({ code, queue }: Attention, { dead }: Overview): string | undefined {
  if (code !== 'DEAD_LETTERS') return undefined;
  const title = dead.queues.find((one) => one.queue === queue)?.topError?.title;
  return title && `Mostly: ${title}`;
}

function SeverityMark({ item }: { item: Attention }) {
  const { severity } = troubleOf(item);
  const usual = { bad: 'broken', warn: 'warning', neutral: 'note' }[severity];
  const word = item.code === 'TARGET_CLOSE' ? 'close' : item.target ? 'missed' : usual;
  return <Mark tone={severity}>{word}</Mark>;
}

/** To stop a queue of Sluice itself because of one receiver would stop it for all. */
function isOwn({ queue }: Attention, { queues }: Overview): boolean {
  return queues.some(({ name, reserved }) => name === queue && reserved);
}

/** The shortest way to mend it: the button itself where there is one, otherwise the place. */
function Remedy({ item, isOwn }: { item: Attention; isOwn: boolean }) {
  const { code, queue } = item;
  const { href, link } = troubleOf(item);
  if (code === 'QUEUE_PAUSED' && queue !== undefined)
    return (
      <Action small tone="primary" run={() => resumeQueue(queue)}>
        Resume
      </Action>
    );
  return (
    <>
      {code === 'JOBS_FAIL' && queue !== undefined && !isOwn && (
        <Action small run={() => pauseQueue(queue)}>
          Pause
        </Action>
      )}
      {code === 'DEAD_LETTERS' && queue !== undefined && (
        <BulkMove
          small
          word="replay"
          queue={queue}
          choice="all"
          what={`all letters of ${queue}`}
          onDone={() => go(href)}
        />
      )}
      <a class="button small" href={href}>
        {link}
      </a>
    </>
  );
}
