/** What the tests of the client share: a server for one test, bytes that are never the same twice, quick retries. */
import { createHash } from 'node:crypto';
import type { TestContext } from 'node:test';
import type { ResumeStore, UploadOptions } from '../src/index.js';
import { ProtocolServer } from './protocolServer.js';
import type { ServerOptions } from './protocolServer.js';

export const CHUNK = 1024;
export const quick = { attempts: 8, baseMs: 4, capMs: 20 };

export async function stage(t: TestContext, options: ServerOptions = {}): Promise<ProtocolServer> {
  const server = await ProtocolServer.start(options);
  t.after(() => server.stop());
  return server;
}

/** What every test says unless it says otherwise: small chunks, quick retries, nothing remembered. */
export function to(server: ProtocolServer, options: Partial<UploadOptions> = {}): UploadOptions {
  return {
    url: server.url,
    drive: 'main',
    path: 'a.bin',
    chunkSize: CHUNK,
    retry: quick,
    resume: false,
    ...options,
  };
}

/** Bytes that look random, differ from chunk to chunk, and are the same for the same seed. */
export function bytesOf(size: number, seed = 'a'): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0, block = 0; at < size; at += 32, block++) {
    const digest = createHash('sha256').update(`${seed} ${block}`).digest();
    bytes.set(digest.subarray(0, Math.min(32, size - at)), at);
  }
  return bytes;
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function memoryStore(): ResumeStore & { texts: Map<string, string> } {
  const texts = new Map<string, string>();
  return {
    texts,
    get: (key) => texts.get(key),
    set: (key, text) => void texts.set(key, text),
    remove: (key) => void texts.delete(key),
  };
}

/** A stream that comes in pieces of a size that fits no chunk. */
export async function* piecesOf(bytes: Uint8Array, pieceSize = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceSize) yield bytes.subarray(at, at + pieceSize);
}

/** For `assert.rejects`. */
export function withCode(code: string): (error: unknown) => boolean {
  return (error) => (error as { code?: string }).code === code;
}
