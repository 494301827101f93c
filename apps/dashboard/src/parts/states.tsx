// The states of jobs and files, each with one colour everywhere. What is as it should be stays quiet.
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

/** A state that came later is shown by its name. */
export function StateMark({ state }: { state: JobState | undefined }) {
  const tone = state !== undefined && Object.hasOwn(tones, state) ? tones[state] : 'neutral';
  return <Mark tone={tone}>{state ?? 'not known'}</Mark>;
}

/** A file that is there needs no colour. */
export function FileState({ status }: { status: string }) {
  return status === 'ACTIVE' ? <span class="soft">active</span> : <Mark>{status.toLowerCase()}</Mark>;
}
