// How a command is defined: a kind, what fast-check draws for it, and what it does. A command names its objects by number ("the
// third session that is there"), so that a shortened sequence still makes sense; one that finds nothing to do does nothing.
import * as fc from 'fast-check';
import type { World } from './world.js';

export interface Command {
  kind: string;
  [name: string]: unknown;
}

export interface Definition {
  arbitrary: fc.Arbitrary<Command>;
  run: (world: World, command: never) => Promise<void>;
}

/** The commands of one file. */
export class CommandSet {
  readonly definitions: Record<string, Definition> = {};

  define = <T extends object>(
    kind: string,
    fields: { [K in keyof T]: fc.Arbitrary<T[K]> },
    run: (world: World, command: T) => Promise<unknown>,
  ): void => {
    const arbitrary = fc.record({ kind: fc.constant(kind), ...fields }) as fc.Arbitrary<Command>;
    this.definitions[kind] = { arbitrary, run: async (world, command) => void (await run(world, command)) };
  };
}

/** Which one of those that are there. */
export const number = fc.nat(999);
export const few = fc.integer({ min: 1, max: 4 });
export const sometimes = (oneIn: number) => fc.nat(oneIn - 1).map((drawn) => drawn === 1);
export const payload = fc.nat(0xffff);

export function pick<T>(list: readonly T[], at: number): T | undefined {
  return list.length === 0 ? undefined : list[at % list.length];
}

/** Any id that means something, and one that does not. */
export function anyId(world: World, at: number): string {
  const { jobs, tombstones, ended } = world.model;
  return pick([...jobs.keys(), ...tombstones.keys(), ...ended.keys(), 'nobody'], at)!;
}
