// The network of a schedule, in the hands of the schedule: a command is carried out when it says so, its reply arrives when it says
// so, or never; a command that its sender has given up may still be carried out much later. Nothing keeps an order, not even
// between the commands of one process, which is worse than any real connection.
import { redisErrors } from '@sluice/redis';
import type { Server } from './server.js';
import type { Wire } from '../../src/channel.js';

/** What a test changes in the commands, to see whether the model notices. */
export type Sabotage = (
  command: string,
  args: readonly (string | number | Buffer)[],
) => SabotagedCall | undefined;
export type SabotagedCall = { command: string; args: (string | number | Buffer)[] };

export interface Change {
  key: string;
  /** The version that was committed before the invalidation which made this change, if one did. */
  version: number;
}

interface Message {
  sender: number;
  carryOut: () => Promise<unknown>;
  changes: string[];
  version: number;
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

export class Network {
  /** Sent, not carried out. */
  readonly requests: Message[] = [];
  /** Carried out, not answered. */
  readonly replies: { message: Message; reply: unknown }[] = [];
  /** Given up by their senders, and still on the way. */
  readonly late: Message[] = [];
  readonly #server: Server;
  readonly #onChange: (changes: Change[]) => void;
  readonly #sabotage: Sabotage | undefined;

  constructor(server: Server, onChange: (changes: Change[]) => void, sabotage?: Sabotage) {
    this.#server = server;
    this.#onChange = onChange;
    this.#sabotage = sabotage;
  }

  /** The end of it that a process holds. `version` says what was committed when a command is sent. */
  wireOf(sender: number, version: () => number): Wire {
    const send = (carryOut: () => Promise<unknown>, changes: string[]) =>
      new Promise<unknown>((resolve, reject) => {
        this.requests.push({ sender, carryOut, changes, version: version(), resolve, reject });
      });
    return {
      call: (command, args) => {
        const changed = this.#sabotage?.(command, args) ?? { command, args };
        const changes = command === 'UNLINK' ? args.map(String) : [];
        return send(() => this.#server.call(changed.command, changed.args), changes);
      },
      run: (script, keys, args) => {
        const { value, generation } = keys as { value?: string; generation?: string };
        const changes = [value, generation].filter((key) => key !== undefined);
        const list = [...script.keys.map((name) => keys[name]), ...script.args.map((name) => args[name])];
        const changed = this.#sabotage?.(script.name, list);
        if (changed) return send(() => this.#server.call(changed.command, changed.args), changes);
        return send(() => this.#server.run(script, keys, args), changes);
      },
    };
  }

  async carryOut(index: number): Promise<void> {
    const [message] = this.requests.splice(index, 1);
    const reply = await this.#run(message!);
    this.replies.push({ message: message!, reply });
  }

  deliver(index: number): void {
    const { message, reply } = this.replies.splice(index, 1)[0]!;
    message.resolve(reply);
  }

  loseReply(index: number): void {
    const { message } = this.replies.splice(index, 1)[0]!;
    message.reject(away());
  }

  /** The sender hears nothing of it any more; it may arrive all the same. */
  delay(index: number): void {
    const [message] = this.requests.splice(index, 1) as [Message];
    this.late.push(message);
    message.reject(away());
  }

  async carryOutLate(index: number): Promise<void> {
    const [message] = this.late.splice(index, 1);
    await this.#run(message!);
  }

  /** A process died: what it sent may still arrive, what was to be answered is not. */
  bury(sender: number): void {
    for (let i = this.requests.length - 1; i >= 0; i--) {
      if (this.requests[i]!.sender === sender) this.late.push(...this.requests.splice(i, 1));
    }
    for (let i = this.replies.length - 1; i >= 0; i--) {
      if (this.replies[i]!.message.sender === sender) this.replies.splice(i, 1);
    }
  }

  async #run(message: Message): Promise<unknown> {
    const reply = await message.carryOut();
    this.#onChange(message.changes.map((key) => ({ key, version: message.version })));
    return reply;
  }
}

function away(): Error {
  return redisErrors.REDIS_UNAVAILABLE({ what: 'a call', waitedMs: 0, outcomeUnknown: true, reason: 'lost' });
}
