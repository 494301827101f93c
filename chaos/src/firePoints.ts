// What a process of a run does at its fail points: of those it was given the first that is met fires, once, and says so before it does.
import { existsSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { armFailPoints } from '@sluice/base';
import type { FailAction } from '@sluice/base';
import { Journal } from './evidence.js';
import type { FaultLine } from './evidence.js';

export interface ArmedPoints {
  /** None fires before, none after. */
  fromMs: number;
  untilMs: number;
  points: Record<string, FailAction>;
  /** Where a point says that it fires. */
  faults: string;
}

export function firePoints(arms: ArmedPoints): void {
  if (Object.keys(arms.points).length === 0) return;
  const log = new Journal<FaultLine>(arms.faults);
  armFailPoints((point) => {
    const action = arms.points[point];
    const at = Date.now();
    if (action === undefined || at < arms.fromMs || at > arms.untilMs) return undefined;
    if (existsSync(overFile(arms.faults))) return undefined;
    armFailPoints(undefined);
    log.write({ f: 'point', at, pid: process.pid, point, action: describe(action), inThread: !isMainThread });
    return action;
  });
}

/** Nothing that is armed fires any more, in no process of the run. */
export function endPoints(faults: string): void {
  writeFileSync(overFile(faults), '');
}

function overFile(faults: string): string {
  return `${faults}.over`;
}

function describe(action: FailAction): string {
  return typeof action === 'string' ? action : `block ${action.blockMs}`;
}
