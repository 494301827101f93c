// A button that changes something on the server. It shows that it works, then what the server answered; it is not offered to those whose role
// is not enough, and it asks first where nothing can be undone.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { may, messageOf } from '../data/api.js';
import type { Role } from '../data/shapes.js';
import { Dialog } from './dialog.js';
import { say } from './toast.js';

export interface ActionProps {
  children: ComponentChildren;
  /** Does it; resolves with what to tell the reader. */
  run: () => Promise<string | undefined>;
  needs?: Role;
  tone?: 'primary' | 'danger' | 'plain' | '';
  small?: boolean;
  /** Asked before it is done. */
  confirm?: { title: string; text: ComponentChildren; button: string };
  disabled?: boolean;
  onDone?: () => void;
  label?: string;
}

export function Action(props: ActionProps) {
  const { needs = 'operator', confirm } = props;
  const [asking, setAsking] = useState(false);
  const { busy, start } = useWork(props.run, props.onDone);
  const isAllowed = may(needs);
  const classes = ['button', props.tone ?? '', props.small ? 'small' : ''].join(' ');
  return (
    <>
      <button
        class={classes}
        type="button"
        aria-label={props.label}
        aria-busy={busy}
        aria-disabled={busy}
        disabled={props.disabled || !isAllowed}
        title={isAllowed ? undefined : `Your key may not do this; it takes the role ${needs}.`}
        onClick={() => (confirm && !busy ? setAsking(true) : start())}
      >
        {props.children}
      </button>
      {confirm && asking && (
        <Dialog
          title={confirm.title}
          narrow
          onClose={() => setAsking(false)}
          foot={
            <>
              <button class="button" type="button" onClick={() => setAsking(false)}>
                Keep
              </button>
              <button
                class={`button ${props.tone === 'danger' ? 'danger' : 'primary'}`}
                type="button"
                onClick={() => {
                  setAsking(false);
                  start();
                }}
              >
                {confirm.button}
              </button>
            </>
          }
        >
          <p>{confirm.text}</p>
        </Dialog>
      )}
    </>
  );
}

/** Runs one piece of work at a time and tells how it ended. */
export function useWork(run: () => Promise<string | undefined>, onDone?: () => void) {
  const [busy, setBusy] = useState(false);
  const isBusy = useRef(false);
  const unsay = useRef<(() => void) | undefined>(undefined);
  const work = async (): Promise<void> => {
    // A button that is busy is not disabled, because a disabled one loses the focus; it does nothing instead.
    if (isBusy.current) return;
    isBusy.current = true;
    setBusy(true);
    // Whoever tries again has read how it failed before.
    unsay.current?.();
    try {
      const told = await run();
      if (told !== undefined) say(told);
      onDone?.();
    } catch (error) {
      unsay.current = say(messageOf(error), 'bad');
    } finally {
      isBusy.current = false;
      setBusy(false);
    }
  };
  return { busy, start: () => void work() };
}
