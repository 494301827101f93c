// What stands in a place whose content the server is asked for: that it is on its way, that it failed, or what came. What came stays on the
// page when asking again fails; the failure stands above it.
import type { ComponentChildren } from 'preact';
import type { Answer } from '../data/answer.js';
import { Failure, Waiting } from './notice.js';

type Given<T> = Pick<Answer<T>, 'data' | 'error' | 'again'>;

export function Answered<T>(props: {
  answer: Given<T>;
  children: (data: NonNullable<T>) => ComponentChildren;
}) {
  const { data, error, again } = props.answer;
  const isThere = data !== undefined && data !== null;
  return (
    <>
      {error !== undefined && (
        <div class="body">
          <Failure error={error} again={again} />
        </div>
      )}
      {isThere ? props.children(data) : error === undefined && <Waiting />}
    </>
  );
}
