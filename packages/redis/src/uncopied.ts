// A command whose buffers go to the socket as they are. ioredis puts a command with bytes in it together in a buffer of its own, which
// for a mebibyte costs a third of a millisecond and a mebibyte of garbage.
import type { Socket } from 'node:net';
import { Command } from 'ioredis';
import type { ScriptArgument } from './script.js';

export class UncopiedCommand extends Command {
  constructor(name: string, args: ScriptArgument[]) {
    super(name, args, { replyEncoding: null });
  }

  /** All but the last piece is written here; the caller writes what is returned, in the same turn, and all of it goes out together. */
  override toWritable(stream: object): string {
    const socket = stream as Socket;
    let text = `*${this.args.length + 1}\r\n$${this.name.length}\r\n${this.name}\r\n`;
    socket.cork();
    for (const argument of this.args) {
      if (argument instanceof Buffer) {
        socket.write(`${text}$${argument.length}\r\n`);
        socket.write(argument);
        text = '\r\n';
      } else {
        const words = String(argument);
        text += `$${Buffer.byteLength(words)}\r\n${words}\r\n`;
      }
    }
    process.nextTick(() => socket.uncork());
    return text;
  }
}
