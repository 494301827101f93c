// Moments: how far away they are, with the exact time in the tooltip. They move by themselves, once a second.
import { countdown, moment, relative } from '../format.js';
import { serverNow } from '../data/live.js';

/** What has happened; clocks that differ a little must not make it the future. */
export function Ago({ at }: { at: number | string | null | undefined }) {
  if (at === null || at === undefined) return <span class="faint">–</span>;
  const atMs = typeof at === 'string' ? Date.parse(at) : at;
  return (
    <time class="nowrap" dateTime={isoOf(atMs)} title={moment(atMs)}>
      {relative(Math.min(atMs, serverNow.value), serverNow.value)}
    </time>
  );
}

export function Until({ at }: { at: number }) {
  return (
    <time class="nowrap" dateTime={isoOf(at)} title={moment(at)}>
      {countdown(at, serverNow.value)}
    </time>
  );
}

/** For a line under a figure: `next in 2 min 30 sec`, or that it is due. */
export function NextIn({ at }: { at: number }) {
  const isDue = at - serverNow.value < 1_000;
  return (
    <>
      {!isDue && 'next in '}
      <Until at={at} />
    </>
  );
}

export function At({ at }: { at: number | string }) {
  const atMs = typeof at === 'string' ? Date.parse(at) : at;
  return (
    <time class="nowrap" dateTime={isoOf(atMs)}>
      {moment(atMs)}
    </time>
  );
}

function isoOf(atMs: number): string {
  const at = new Date(atMs);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}
