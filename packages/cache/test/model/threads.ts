// The threads that compress and decompress large values, in the hands of the schedules: what a cache gives to them is ready when its
// schedule says so. It is done at once and kept back. A value says whose it is, because all caches of this process share the threads.
//
// It must be imported before the cache, which takes hold of the functions that are replaced here. Nothing is gained by compressing what
// has no content: level 0 makes the same format in a tenth of the time, and as large as it was.
import { syncBuiltinESMExports } from 'node:module';
import zlib from 'node:zlib';

/** So large that another thread opens it. */
const largeText = 'x'.repeat(70_000);
/** Where in an envelope the owner stands: before the text. */
const ownerWithin = 200;

export interface Large {
  /** Of its schedule. */
  owner: string;
  text: string;
}

type Done = (error: Error | null, result: Buffer) => void;
type Work = (data: Buffer | string, options: zlib.ZlibOptions, done: Done) => void;

const owners = new Map<string, (done: () => void) => void>();

export function makeLarge(owner: string): Large {
  return { owner, text: largeText };
}

/** `hold` gets everything that the threads have done for this owner, to be called when it is to arrive. */
export function ownThreads(owner: string, hold: (arrive: () => void) => void): { release(): void } {
  owners.set(owner, hold);
  return { release: () => void owners.delete(owner) };
}

const compress: Work = (data, _options, done) => {
  const packed = zlib.gzipSync(data, { level: 0 });
  keepBack(data.toString(), () => done(null, packed));
};

const decompress: Work = (data, options, done) => {
  const text = zlib.gunzipSync(data, options);
  keepBack(text.toString('latin1', 0, ownerWithin), () => done(null, text));
};

function keepBack(text: string, arrive: () => void): void {
  const owner = /"owner":"([^"]+)"/.exec(text.slice(0, ownerWithin))?.[1];
  const hold = owner === undefined ? undefined : owners.get(owner);
  // A schedule that has ended keeps nobody waiting.
  if (hold) hold(arrive);
  else setImmediate(arrive);
}

Object.assign(zlib, { gzip: compress, gunzip: decompress });
syncBuiltinESMExports();
