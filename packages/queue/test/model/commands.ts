// What can happen, as commands that fast-check draws and orders: by producers, workers and operators, and by time itself.
import * as fc from 'fast-check';
import { aboutChains } from './chains.js';
import type { Command, Definition } from './define.js';
import { aboutLetters } from './letters.js';
import { ofOperators } from './operators.js';
import { ofProducers } from './producers.js';
import { ofTime } from './time.js';
import { ofWorkers } from './workers.js';
import type { World } from './world.js';

export type { Command } from './define.js';

const sets = [ofProducers, ofWorkers, ofOperators, aboutLetters, aboutChains, ofTime];
const definitions = Object.assign({}, ...sets.map((set) => set.definitions)) as Record<string, Definition>;

export const allKinds = Object.keys(definitions);

/** Commands with how often each comes, relative to the others. */
export function anyOf(weights: Record<string, number>): fc.Arbitrary<Command> {
  const options = Object.entries(weights).map(([kind, weight]) => ({
    weight,
    arbitrary: definitions[kind]!.arbitrary,
  }));
  return fc.oneof(...options);
}

export function runCommand(world: World, command: Command): Promise<void> {
  return definitions[command.kind]!.run(world, command as never);
}
