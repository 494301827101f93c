// What needs somebody, the worst first, each with what mends it beside it.
import type { ComponentChildren } from 'preact';
import { at, call } from '../data/api.js';
import type { Attention } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Action } from '../parts/action.js';
import { Mark, Panel } from '../parts/panel.js';
import { to } from '../place.js';
import { rank, severityOf } from '../severity.js';

const shown = 8;

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
            <li key={`${item.code} ${item.queue ?? ''}`} data-row>
              <SeverityMark code={item.code} />
              <span class="wrap">
                {item.queue !== undefined && (
                  <>
                    <a href={to('queues', item.queue)}>{item.queue}</a>:{' '}
                  </>
                )}
                {item.message}
              </span>
              <span class="row-actions">{remedyFor(item)}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function SeverityMark({ code }: { code: string }) {
  const severity = severityOf(code);
  return <Mark tone={severity}>{{ bad: 'broken', warn: 'warning', neutral: 'note' }[severity]}</Mark>;
}

/** The shortest way to mend it. */
function remedyFor({ code, queue }: Attention): ComponentChildren {
  const link = (href: string, text: string) => (
    <a class="button small" href={href}>
      {text}
    </a>
  );
  if (queue === undefined) {
    if (code === 'OUTBOX_LATE') return link('/events', 'See the outbox');
    return code.startsWith('REDIS') ? link('/redis', 'See Redis') : link('/queues', 'See the queues');
  }
  switch (code) {
    case 'QUEUE_PAUSED':
      return (
        <Action
          small
          tone="primary"
          run={async () => {
            await call('POST', `${at('v1', 'queues', queue)}/resume`);
            return `${queue} starts jobs again.`;
          }}
        >
          Resume
        </Action>
      );
    case 'DEAD_LETTERS':
      return link(to('dead', { queue }), 'Replay or discard');
    case 'NO_WORKERS':
      return link(to('workers', { queue }), 'See the workers');
    default:
      return link(to('queues', queue), 'See the queue');
  }
}
