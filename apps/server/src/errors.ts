/** Everything that keeps the server from starting, each with what to do about it. */
import { defineErrors } from '@sluice/base';

export const serverErrors = defineErrors({
  BAD_CONFIG: {
    message: (d: { name: string; value: string; wanted: string }) =>
      `${d.name} is "${d.value}", but it must be ${d.wanted}`,
    retryable: false,
  },
  BAD_HANDLERS: {
    message: (d: { file: string; reason: string }) => `SLUICE_HANDLERS is "${d.file}", but ${d.reason}`,
    retryable: false,
  },
  ALREADY_RUNNING: {
    message: (d: { folder: string; pid: number }) =>
      `another Sluice (process ${d.pid}) already uses ${d.folder}; stop it, or set SLUICE_DATA_DIR to another folder`,
    retryable: true,
  },
  NO_REDIS: {
    message: () =>
      'neither redis-server nor valkey-server is on the PATH; install one, or set SLUICE_REDIS_URL to a server',
    retryable: false,
  },
  REDIS_FAILED: {
    message: (d: { reason: string }) => `Redis did not start: ${d.reason}`,
    retryable: true,
  },
  POSTGRES_FAILED: {
    message: (d: { reason: string }) => `PostgreSQL did not start: ${d.reason}`,
    retryable: true,
  },
  OPEN_TO_ALL: {
    message: (d: { host: string }) =>
      `SLUICE_HOST is "${d.host}", which others can reach, but there are no keys; set SLUICE_KEYS, or leave SLUICE_HOST out and make one first (POST /v1/keys)`,
    retryable: false,
  },
  WORKER_OPEN_TO_ALL: {
    message: (d: { host: string }) =>
      `SLUICE_HOST is "${d.host}", which others can reach, but SLUICE_KEYS is not set, and a process with the role queues alone knows no other keys: those made with POST /v1/keys are in the database, which it does not use; set SLUICE_KEYS to a key for your probes ("*:viewer=<key>"), or leave SLUICE_HOST out`,
    retryable: false,
  },
  /** In the place of what the API says, with the same code: here another key helps, not another header. */
  UNAUTHENTICATED: {
    message: () =>
      'no key that is known here: a process with the role queues alone knows the keys in its SLUICE_KEYS only, not those made with POST /v1/keys; send "Authorization: Bearer <key>" with one of "*" from there',
    retryable: false,
  },
  BAD_HOOKS: {
    message: (d: { file: string; reason: string }) => `SLUICE_UPLOAD_HOOKS is "${d.file}", but ${d.reason}`,
    retryable: false,
  },
  DRIVE_ELSEWHERE: {
    message: (d: { drive: string; bucket: string; wanted: string }) =>
      `the drive "${d.drive}" keeps its files in "${d.bucket}" for ever, and would have to keep them in "${d.wanted}" now; set or leave out SLUICE_S3_BUCKET as before, or begin anew with another SLUICE_DATA_DIR or database`,
    retryable: false,
  },
  PORT_TAKEN: {
    message: (d: { host: string; port: number }) =>
      `${d.host}:${d.port} is taken; set SLUICE_PORT to another port, or leave it out`,
    retryable: true,
  },
});

/** The code with which a process says that it was called wrongly, and that starting it again will not help. */
export const EXIT_MISUSE = 2;

export function isMisuse(code: string): boolean {
  return [
    ...['BAD_CONFIG', 'BAD_HANDLERS', 'BAD_HOOKS', 'OPEN_TO_ALL', 'WORKER_OPEN_TO_ALL'],
    'DRIVE_ELSEWHERE',
  ].includes(code);
}
