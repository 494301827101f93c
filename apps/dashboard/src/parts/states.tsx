// The states of a job, each with one colour everywhere.
import type { JobState } from '../data/shapes.js';
import { Mark, type Tone } from './panel.js';

export const jobStates: readonly JobState[] = [
  'waiting',
  'active',
  'delayed',
  'blocked',
  'dead',
  'done',
  'cancelled',
];

const tones: Record<JobState, Tone> = {
  waiting: 'neutral',
  active: 'accent',
  delayed: 'warn',
  blocked: 'neutral',
  dead: 'bad',
  done: 'ok',
  cancelled: 'neutral',
};

export function StateMark({ state }: { state: JobState | undefined }) {
  return <Mark tone={state ? tones[state] : 'neutral'}>{state ?? 'not known'}</Mark>;
}
