// Files that this page itself sends, with @sluice/client: in parts, resumable, verified. They go on while other pages are looked at.
import { signal } from '@preact/signals';
import type { UploadProgress, UploadTask } from '@sluice/client';
import { session, tenantHeader } from './api.js';

export interface Sending {
  number: number;
  name: string;
  drive: string;
  progress: UploadProgress | null;
  problem: string | null;
  task: UploadTask | null;
}

export const sendings = signal<Sending[]>([]);
let count = 0;

// With the page its files go, too: only who chooses them again lets them go on.
window.addEventListener('beforeunload', (event) => {
  if (sendings.value.some((sending) => !isOver(sending))) event.preventDefault();
});

export function isOver({ progress }: Sending): boolean {
  return progress !== null && ['done', 'failed', 'cancelled'].includes(progress.state);
}

export async function send(
  files: readonly File[],
  drive: string,
  folder: string,
  tenant: string,
): Promise<void> {
  // Loaded with the first file: most visitors never send one.
  const { upload } = await import('@sluice/client');
  for (const file of files) {
    const number = ++count;
    const name = [folder, file.name].filter(Boolean).join('/');
    sendings.value = [{ number, name, drive, progress: null, problem: null, task: null }, ...sendings.value];
    const task = upload(file, {
      url: location.origin,
      drive,
      path: name,
      fetch: withProof(tenant),
      onProgress: (progress) => change(number, { progress }),
    });
    change(number, { task });
    task.done.then(
      () => change(number, { progress: { ...task.progress } }),
      (error: unknown) =>
        change(number, {
          problem: error instanceof Error ? error.message : String(error),
          progress: { ...task.progress },
        }),
    );
  }
}

/** Whoever leaves takes what they send with them: it is paused on the server, and the next one does not see its name. */
export function forgetAll(): void {
  for (const { task } of sendings.value) task?.pause();
  sendings.value = [];
}

export function forget(number: number): void {
  sendings.value = sendings.value.filter((sending) => sending.number !== number);
}

function change(number: number, changes: Partial<Sending>): void {
  sendings.value = sendings.value.map((sending) =>
    sending.number === number ? { ...sending, ...changes } : sending,
  );
}

/** The cookie comes along by itself; what proves that this page asked, and for whom, does not. */
function withProof(tenant: string): typeof fetch {
  return (input, init = {}) => {
    const headers = new Headers(init.headers);
    const csrf = session.value?.csrf;
    if (csrf) headers.set('X-Sluice-CSRF', csrf);
    for (const [name, value] of Object.entries(tenantHeader(tenant))) headers.set(name, value);
    return fetch(input, { ...init, headers, credentials: 'same-origin' });
  };
}
