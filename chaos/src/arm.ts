// Loaded before every process of a run, and before each of its threads (`node --import`): takes a guard out if this is a sabotage,
// and arms the fail points. Of the points it was given the first that is met fires, once, and says so before it does.
import { isMainThread } from 'node:worker_threads';
import { armFailPoints } from '@sluice/queue/testing';
import type { FailAction } from '@sluice/queue/testing';
import { Journal } from './evidence.js';
import type { FaultLine } from './evidence.js';
import { takeOut } from './sabotage.js';
import type { GuardName } from './sabotage.js';

export interface Arms {
  sabotage?: GuardName | undefined;
  /** None fires before, none after. */
  fromMs: number;
  untilMs: number;
  points: Record<string, FailAction>;
  /** Where a point says that it fires. */
  faults: string;
}

const arms = JSON.parse(process.env['CHAOS_ARMS'] ?? 'null') as Arms | null;
if (arms?.sabotage) takeOut(arms.sabotage);
if (arms && Object.keys(arms.points).length > 0) {
  const log = new Journal<FaultLine>(arms.faults);
  armFailPoints((point) => {
    const action = arms.points[point];
    const at = Date.now();
    if (action === undefined || at < arms.fromMs || at > arms.untilMs) return undefined;
    armFailPoints(undefined);
    log.write({ f: 'point', at, pid: process.pid, point, action: describe(action), inThread: !isMainThread });
    return action;
  });
}

function describe(action: FailAction): string {
  return typeof action === 'string' ? action : `block ${action.blockMs}`;
}
