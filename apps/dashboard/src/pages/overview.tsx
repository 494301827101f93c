// What is wrong, in five seconds: what needs somebody stands first, the rest tells whether it is getting better.
import { useAnswer } from '../data/answer.js';
import { get } from '../data/api.js';
import { historyEveryMs, historyOf } from '../data/history.js';
import { overview, takeOverview } from '../data/live.js';
import type { Overview } from '../data/shapes.js';
import { panels } from '../panels.js';
import { Guard } from '../parts/guard.js';
import { Failure, Waiting } from '../parts/notice.js';
import { Mark, PageFrame } from '../parts/panel.js';
import { SpanField } from '../parts/spanField.js';
import { tally } from '../severity.js';
import { chosenSpan } from '../spans.js';
import { plural } from '../format.js';

export default function OverviewPage() {
  // The stream brings it a moment later; asking is faster for the first paint.
  const first = useAnswer('overview', async (abort) => {
    const answer = await get<Overview>('/v1/overview', { signal: abort });
    if (!abort.aborted) takeOverview(answer);
    return answer;
  });
  const latest = overview.value;
  // Of the queues that are there when it is asked for: a new one is among them a minute later, when it has a first point, and until then
  // the others stay on the page.
  const history = useAnswer(
    latest ? `history ${chosenSpan.value.name}` : null,
    (abort) => historyOf(overview.value?.queues ?? [], chosenSpan.value, abort),
    historyEveryMs,
  );
  return (
    <PageFrame title="Overview" lead={latest && <Verdict overview={latest} />} actions={<SpanField />}>
      {first.error !== undefined && !latest && <Failure error={first.error} again={first.again} />}
      {history.error !== undefined && <Failure error={history.error} again={history.again} />}
      {latest ? (
        <div class="columns even">
          {panels.map(({ name, size, panel: Panel }) => (
            <div key={name} class={size}>
              <Guard what={`The panel “${name}”`}>
                <Panel overview={latest} history={history} />
              </Guard>
            </div>
          ))}
        </div>
      ) : (
        first.error === undefined && <Waiting />
      )}
    </PageFrame>
  );
}

/** The five seconds: is something wrong, and how much of it? What it is stands below. */
function Verdict({ overview: { attention, problems } }: { overview: Overview }) {
  const { bad, warn } = tally(attention, problems);
  if (bad + warn === 0) return <Mark tone="ok">all is well</Mark>;
  return (
    <span class="verdict">
      {bad > 0 && <Mark tone="bad">{bad} broken</Mark>}
      {warn > 0 && <Mark tone="warn">{plural(warn, 'warning')}</Mark>}
    </span>
  );
}
