// Short messages on what an action did. They stay long enough to be read; failures stay until they are closed.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

interface Toast {
  id: number;
  text: string;
  tone: 'ok' | 'bad';
}

const stayMs = 6_000;
const most = 4;
const toasts = signal<Toast[]>([]);
/** The dialogs that are open, the topmost last. */
const layers = signal<readonly string[]>([]);
let count = 0;

/** Answers with what takes it back. */
export function say(text: string, tone: Toast['tone'] = 'ok'): () => void {
  const id = ++count;
  toasts.value = [...toasts.value, { id, text, tone }].slice(-most);
  if (tone === 'ok') window.setTimeout(() => close(id), stayMs);
  return () => close(id);
}

/** What was said to one person is not for the next. */
export function unsayAll(): void {
  toasts.value = [];
}

function close(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** While a dialog is open, what lies below it is dim, out of reach and not read out: what is said meanwhile stands in the dialog. */
export function Toasts({ layer }: { layer?: string }) {
  useEffect(() => {
    if (layer === undefined) return undefined;
    layers.value = [...layers.value, layer];
    return () => {
      layers.value = layers.value.filter((one) => one !== layer);
    };
  }, [layer]);
  const shown = layers.value.at(-1) === layer ? toasts.value : [];
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, tone }) => (
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
