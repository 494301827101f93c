// The real Redis behind all schedules. What they do in one turn of the loop goes out as one write, and what it answers is read as it
// comes: half a million commands would otherwise spend most of their time in a client that is made for other things.
import { connect, type Socket } from 'node:net';
import type { Script, ScriptArgument } from '@sluice/redis';
import { scripts } from '../../src/scripts.js';

/** So many that were answered are forgotten at once. */
const forgetAfter = 1_000;

interface Waiting {
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

export class Server {
  readonly #socket: Socket;
  /** Sent, or to be sent at the end of this turn, in order; the first of them have been answered. */
  readonly #waiting: Waiting[] = [];
  #answered = 0;
  #unsent: (string | Buffer)[] = [];
  #unread: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('Redis has closed the connection')));
  }

  static async connect(url: string): Promise<Server> {
    const { hostname, port } = new URL(url);
    const server = new Server(connect(Number(port), hostname));
    for (const { source } of Object.values(scripts)) await server.call('SCRIPT', ['LOAD', source]);
    return server;
  }

  call(command: string, args: readonly ScriptArgument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#unsent.length === 0) setImmediate(() => this.#send());
      this.#waiting.push({ resolve, reject });
      this.#write(command, args);
    });
  }

  run<K extends string, A extends string>(
    script: Script<K, A>,
    keys: { readonly [name in K]: string },
    args: { readonly [name in A]: ScriptArgument },
  ): Promise<unknown> {
    const list = [...script.keys.map((name) => keys[name]), ...script.args.map((name) => args[name])];
    return this.call('EVALSHA', [script.sha, script.keys.length, ...list]);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** A command is a count, and each part with its length. */
  #write(command: string, args: readonly ScriptArgument[]): void {
    let text = `*${args.length + 1}\r\n`;
    for (const part of [command, ...args]) {
      if (Buffer.isBuffer(part)) {
        this.#unsent.push(`${text}$${part.length}\r\n`, part);
        text = '\r\n';
      } else {
        const word = String(part);
        text += `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
      }
    }
    this.#unsent.push(text);
  }

  #send(): void {
    const unsent = this.#unsent;
    this.#unsent = [];
    if (unsent.every((part) => typeof part === 'string')) return void this.#socket.write(unsent.join(''));
    this.#socket.write(
      Buffer.concat(unsent.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))),
    );
  }

  #read(bytes: Buffer): void {
    const replies = new Replies(this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]));
    for (let reply = replies.next(); reply !== unfinished; reply = replies.next()) {
      const { resolve, reject } = this.#waiting[this.#answered++]!;
      if (reply instanceof Error) reject(reply);
      else resolve(reply);
    }
    this.#unread = replies.rest;
    if (this.#answered < forgetAfter) return;
    this.#waiting.splice(0, this.#answered);
    this.#answered = 0;
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(this.#answered)) reject(error);
  }
}

const unfinished = Symbol('unfinished');
const carriageReturn = 0x0d;

/** Whole replies among bytes that have come. What kind one is of says its first byte; lines end with two. */
class Replies {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get rest(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  next(): unknown {
    const begin = this.#at;
    const reply = this.#reply();
    if (reply === unfinished) this.#at = begin;
    return reply;
  }

  #reply(): unknown {
    const end = this.#bytes.indexOf(carriageReturn, this.#at);
    if (end === -1 || end + 2 > this.#bytes.length) return unfinished;
    const kind = String.fromCharCode(this.#bytes[this.#at]!);
    const line = this.#bytes.toString('latin1', this.#at + 1, end);
    this.#at = end + 2;
    if (kind === '$') return this.#string(Number(line));
    if (kind === '*') return this.#list(Number(line));
    if (kind === ':') return Number(line);
    return kind === '-' ? new Error(line) : Buffer.from(line);
  }

  #string(length: number): unknown {
    if (length < 0) return null;
    const begin = this.#at;
    this.#at += length + 2;
    return this.#at > this.#bytes.length ? unfinished : this.#bytes.subarray(begin, begin + length);
  }

  #list(length: number): unknown {
    const list: unknown[] = [];
    for (let i = 0; i < length; i++) {
      const item = this.#reply();
      if (item === unfinished) return unfinished;
      list.push(item);
    }
    return list;
  }
}
