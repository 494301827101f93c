// Loaded before every server of a run, and before each of its threads (`node --import`): takes a guard out of the scripts of uploads
// if this is a sabotage, and arms the fail points.
import { firePoints } from '../firePoints.js';
import type { ArmedPoints } from '../firePoints.js';
import { takeOut } from './sabotage.js';
import type { GuardName } from './sabotage.js';

export interface Arms extends ArmedPoints {
  sabotage?: GuardName | undefined;
}

const arms = JSON.parse(process.env['CHAOS_ARMS'] ?? 'null') as Arms | null;
if (arms?.sabotage) takeOut(arms.sabotage);
if (arms) firePoints(arms);
