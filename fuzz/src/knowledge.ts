// Names and ids that answers have mentioned, by the name of the field: the next requests can ask for things that exist. Bounded; the oldest
// are forgotten first.
import type { Random } from '@sluice/testbed/random';

/** With these a stranger would be none any more. */
const secrets = new Set(['key', 'secret', 'token', 'csrf', 'signature', 'url']);
const keptPerName = 200;
const longestKept = 300;
/** Answers can be large; ids are near their top. */
const looksAtMost = 400;

export class Knowledge {
  readonly #values = new Map<string, string[]>();

  constructor(first: Record<string, string[]> = {}) {
    for (const [name, values] of Object.entries(first)) this.#values.set(name, values);
  }

  pick(name: string, random: Random): string | undefined {
    const values = this.#values.get(name);
    return values && values.length > 0 ? random.pick(values) : undefined;
  }

  /** Takes what an answer of this group mentions. */
  learn(group: string, answer: unknown): void {
    const waiting: unknown[] = [answer];
    for (let looks = 0; waiting.length > 0 && looks < looksAtMost; looks++) {
      const value = waiting.shift();
      if (typeof value !== 'object' || value === null) continue;
      for (const [name, field] of Object.entries(value)) {
        if (typeof field === 'string') this.#keep(group, name, field);
        else waiting.push(field);
      }
    }
  }

  #keep(group: string, name: string, value: string): void {
    if (value === '' || value.length > longestKept || secrets.has(name)) return;
    // A `next` is what `cursor` and `after` ask for; an id is also an id of its group.
    const names =
      name === 'next' ? ['cursor', 'after'] : /^(id|\w+Id)$/.test(name) ? ['id', `${group}.id`] : [];
    for (const each of new Set([name, ...names])) {
      const values = this.#values.get(each) ?? [];
      if (values.includes(value)) continue;
      values.push(value);
      if (values.length > keptPerName) values.shift();
      this.#values.set(each, values);
    }
  }
}
