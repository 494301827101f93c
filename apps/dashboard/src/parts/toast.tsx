// Short messages on what an action did. They stay long enough to be read; failures stay until they are closed.
import { signal } from '@preact/signals';

interface Toast {
  id: number;
  text: string;
  tone: 'ok' | 'bad';
}

const stayMs = 6_000;
const most = 4;
const toasts = signal<Toast[]>([]);
let count = 0;

export function say(text: string, tone: Toast['tone'] = 'ok'): void {
  const id = ++count;
  toasts.value = [...toasts.value, { id, text, tone }].slice(-most);
  if (tone === 'ok') window.setTimeout(() => close(id), stayMs);
}

/** What was said to one person is not for the next. */
export function unsayAll(): void {
  toasts.value = [];
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone }) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{text}</span>
          <button class="button plain small" type="button" onClick={() => close(id)}>
            Close
          </button>
        </div>
      ))}
    </div>
  );
}
