// The browser's own dialog: it keeps the focus inside, closes with Escape, and gives the focus back to what opened it. A dialog that is taken out
// of the page while it is open would lose it, so it is closed first.
//
// A question about a row stands beside the page, not in the row: news may take the row away while somebody reads or writes, and the question stays.
import { signal } from '@preact/signals';
import { Fragment, type ComponentChildren, type TargetedKeyboardEvent } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { path } from '../place.js';
import { say, Toasts } from './toast.js';

type Draw = (close: () => void) => ComponentChildren;

const asked = signal<readonly { id: number; draw: Draw }[]>([]);
let count = 0;

/** Opens what `draw` draws, as things are now; it stays until it is closed, or until the reader goes to another page. */
export function openDialog(draw: Draw): void {
  asked.value = [...asked.value, { id: ++count, draw }];
}

/** The place of the dialogs that were opened. */
export function Dialogs() {
  const here = path.value;
  useEffect(() => () => void (asked.value = []), [here]);
  return (
    <>
      {asked.value.map(({ id, draw }) => (
        <Fragment key={id}>{draw(() => (asked.value = asked.value.filter((one) => one.id !== id)))}</Fragment>
      ))}
    </>
  );
}

export function Dialog(props: {
  title: string;
  onClose: () => void;
  narrow?: boolean;
  /** Somebody has written what Escape must not throw away. */
  unsaved?: boolean;
  children: ComponentChildren;
  foot?: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const shown = dialog.current!;
    const opener = document.activeElement;
    shown.showModal();
    return () => {
      shown.close();
      // What opened it may be gone with what it was about; the page itself is the next best place.
      const place = opener?.isConnected ? opener : document.getElementById('page');
      if (place instanceof HTMLElement) place.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.narrow ? 'narrow' : ''}
      aria-labelledby={id}
      onClose={props.onClose}
      onCancel={(event) => {
        if (!props.unsaved) return;
        event.preventDefault();
        say('What you wrote is not sent yet; Close throws it away.');
      }}
      onKeyDown={goOn}
    >
      <div>
        <header>
          <h2 id={id}>{props.title}</h2>
          <button class="button plain small" type="button" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </header>
        <div class="body">{props.children}</div>
        {props.foot && <footer>{props.foot}</footer>}
      </div>
      <Toasts layer={id} />
    </dialog>
  );
}

/** Enter in a line of text does what the dialog is for, unless that cannot be undone. */
function goOn(event: TargetedKeyboardEvent<HTMLDialogElement>): void {
  const { target, key, isComposing, currentTarget } = event;
  if (key !== 'Enter' || isComposing || !(target instanceof HTMLInputElement)) return;
  event.preventDefault();
  currentTarget.querySelector<HTMLButtonElement>('footer .button.primary')?.click();
}
