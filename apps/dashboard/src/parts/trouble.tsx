// On every page: the server answers, but cannot know anything new. What is shown is old, and says how old.
import { blindFor, lastHeardMs } from '../data/live.js';
import { Notice } from './notice.js';
import { Ago } from './time.js';

export function Trouble() {
  if (blindFor.value === null) return null;
  const cause = blindFor.value === 'REDIS_UNAVAILABLE' ? 'Redis does not answer' : 'The server cannot answer';
  return (
    <Notice
      tone="bad"
      aside={
        <>
          From <Ago at={lastHeardMs.value} />.
        </>
      }
    >
      {cause}. The figures are the last that were known; this page looks again by itself.
    </Notice>
  );
}
