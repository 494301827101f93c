// On every page: nothing new can be known, because the server is gone, cannot answer, or does not see everything itself. What is shown is
// old, and says how old.
import { blindFor, lastHeardMs, liveState, overview, silent } from '../data/live.js';
import { Notice } from './notice.js';
import { Ago } from './time.js';

export function Trouble() {
  const trouble = troubleNow();
  if (trouble === undefined) return null;
  return (
    <Notice
      tone="bad"
      aside={
        <>
          From <Ago at={trouble.sinceMs} />.
        </>
      }
    >
      {trouble.cause}. The figures are the last that were known; this page looks again by itself.
    </Notice>
  );
}

function troubleNow(): { cause: string; sinceMs: number } | undefined {
  const sinceMs = lastHeardMs.value;
  // Before the first word there is nothing old to warn of; the page says by itself what it could not get.
  if (liveState.value === 'lost')
    return sinceMs === 0 ? undefined : { cause: 'The server does not answer', sinceMs };
  if (blindFor.value === 'REDIS_UNAVAILABLE') return { cause: 'Redis does not answer', sinceMs };
  if (blindFor.value === silent) return { cause: 'The server has fallen silent', sinceMs };
  if (blindFor.value !== null) return { cause: 'The server cannot answer', sinceMs };
  const problem = overview.value?.problems.find(({ queue }) => queue === undefined);
  return problem && { cause: problem.message, sinceMs: problem.sinceMs };
}
