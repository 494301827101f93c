// What cannot be drawn takes only its own place with it: the rest of the page stays, and says where something is missing.
import type { ComponentChildren } from 'preact';
import { useErrorBoundary } from 'preact/hooks';
import { messageOf } from '../data/api.js';
import { Failure } from './notice.js';

export function Guard(props: {
  what: string;
  children: ComponentChildren;
  /** What stands around the failure, where the failure took that away, too. */
  frame?: (failure: ComponentChildren) => ComponentChildren;
}) {
  const [error, again] = useErrorBoundary((found: unknown) => console.error(found)) as [unknown, () => void];
  if (error === undefined) return <>{props.children}</>;
  const failure = (
    <Failure error={new Error(`${props.what} could not be drawn: ${messageOf(error)}`)} again={again} />
  );
  return <>{props.frame ? props.frame(failure) : failure}</>;
}
