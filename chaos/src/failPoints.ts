// The fail points of the queue, read from its compiled sources: a list by hand would forget the newest one.
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export type Role = 'worker' | 'producer' | 'operator' | 'foreign';

/** Which process can meet the points of a file. What is not here is met by workers. */
const elsewhere: Record<string, Role[]> = {
  'producer.js': ['producer', 'worker'],
  'chain.js': ['producer', 'worker'],
  'dead.js': ['operator'],
};

export interface FailPoint {
  name: string;
  roles: Role[];
}

export function findFailPoints(): FailPoint[] {
  const folder = new URL('.', import.meta.resolve('@sluice/queue'));
  const points: FailPoint[] = [];
  for (const file of readdirSync(fileURLToPath(folder))
    .filter((name) => name.endsWith('.js'))
    .sort()) {
    const code = readFileSync(new URL(file, folder), 'utf8');
    // A point may choose between names: failPoint(settles ? 'settle.replied' : 'retry.replied').
    for (const [, names] of code.matchAll(/\bfailPoint\((.*)\);/g)) {
      for (const [, name] of names!.matchAll(/'(\w+\.\w+)'/g))
        points.push({ name: name!, roles: elsewhere[file] ?? ['worker'] });
    }
  }
  return points;
}
