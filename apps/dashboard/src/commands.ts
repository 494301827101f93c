// Lines for the terminal that the pages offer. Names come from anybody, a shared address included, and what somebody pastes into a
// shell is carried out: nothing of a name reaches it but letters, digits and the signs % - _ .
import { session } from './data/api.js';
import { serverAddress } from './place.js';

export function sendFile(drive = 'main'): string {
  return `curl ${key()}-T README.md ${serverAddress()}/v1/files/${plain(drive)}/README.md`;
}

export function makeDrive(): string {
  return `curl ${key()}-X PUT ${serverAddress()}/v1/drives/main`;
}

export function readDrives(): string {
  return `curl ${key()}-s ${serverAddress()}/v1/drives`;
}

export function addJob(queue: string): string {
  const body = `-H 'Content-Type: application/json' -d '{"data":{"hello":"world"}}'`;
  return `curl ${key()}-X POST ${serverAddress()}/v1/queues/${plain(queue)}/jobs ${body}`;
}

/** A server with keys refuses whoever brings none. The page does not know the reader's; the shell may. */
function key(): string {
  return session.value?.via === 'open' ? '' : '-H "X-Sluice-Key: $KEY" ';
}

/** `encodeURIComponent` leaves quotes and brackets, which a shell reads. */
function plain(name: string): string {
  return encodeURIComponent(name).replace(
    /[!'()*~]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
