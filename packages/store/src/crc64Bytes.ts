// Who computes the CRC-64 of bytes: our own compiled code where it was built (`native/crc64.c`, 11 GB/s), else aws-crt, which looks
// them up in a table (1.6 GB/s; plain JavaScript reaches 0.3). Compiled code that cannot be loaded, or does not know the checksum of
// a text that everybody knows, is as good as none.
import { createRequire } from 'node:module';

/** `state`, eight bytes with the lowest first, becomes the checksum of all before and these. */
export type Extend = (state: Buffer, bytes: Buffer) => void;

/** The published check value, of 123456789; and of that text twenty times, which goes every way through `native/crc64.c`. */
const checks = [
  { times: 1, crc: 0xae8b14860a799888n },
  { times: 20, crc: 0xb897932f1911fe28n },
];

const require = createRequire(import.meta.url);

/** Undefined where it was not built or does not work. */
export function loadCompiled(file = '../native/crc64.node'): Extend | undefined {
  try {
    const { extend } = require(file) as { extend?: Extend };
    return extend && isRight(extend) ? extend : undefined;
  } catch {
    return undefined;
  }
}

export function loadAwsCrt(): Extend {
  // Only its checksums: the index brings MQTT and HTTP along.
  const { crc64nvme } = require('aws-crt/dist/native/checksums.js') as {
    crc64nvme: (bytes: Buffer, previous: DataView) => DataView;
  };
  const view = new DataView(new ArrayBuffer(8));
  return (state, bytes) => {
    view.setBigUint64(0, state.readBigUInt64LE());
    state.writeBigUInt64LE(crc64nvme(bytes, view).getBigUint64(0));
  };
}

export const extend: Extend = loadCompiled() ?? loadAwsCrt();

function isRight(candidate: Extend): boolean {
  return checks.every(({ times, crc }) => {
    const state = Buffer.alloc(8);
    candidate(state, Buffer.from('123456789'.repeat(times)));
    return state.readBigUInt64LE() === crc;
  });
}
