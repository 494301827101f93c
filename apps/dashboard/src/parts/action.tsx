// A button that changes something on the server. It shows that it works, then what the server answered; it is not offered to those whose role
// is not enough, and it asks first where nothing can be undone.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { may, messageOf } from '../data/api.js';
import type { Role } from '../data/shapes.js';
import { Dialog, openDialog } from './dialog.js';
import { say } from './toast.js';

interface Question {
  title: string;
  text: ComponentChildren;
  button: string;
}

export interface ActionProps {
  children: ComponentChildren;
  /** Does it; resolves with what to tell the reader. */
  run: () => Promise<string | undefined>;
  needs?: Role;
  tone?: 'primary' | 'danger' | 'plain' | '';
  small?: boolean;
  /** Asked before it is done. */
  confirm?: Question;
  disabled?: boolean;
  onDone?: () => void;
  label?: string;
}

export function Action(props: ActionProps) {
  const { needs = 'operator', confirm } = props;
  const { busy, start } = useWork(props.run, props.onDone);
  const isAllowed = may(needs);
  const classes = ['button', props.tone ?? '', props.small ? 'small' : ''].join(' ');
  const ask = ({ title, text, button }: Question): void =>
    openDialog((close) => (
      <Dialog
        title={title}
        narrow
        onClose={close}
        foot={
          <>
            <button class="button" type="button" onClick={close}>
              Keep
            </button>
            <button
              class={`button ${props.tone === 'danger' ? 'danger' : 'primary'}`}
              type="button"
              onClick={() => {
                close();
                start();
              }}
            >
              {button}
            </button>
          </>
        }
      >
        <p>{text}</p>
      </Dialog>
    ));
  return (
    <button
      class={classes}
      type="button"
      aria-label={props.label}
      aria-busy={busy}
      aria-disabled={busy}
      disabled={props.disabled || !isAllowed}
      title={isAllowed ? undefined : `Your key may not do this; it takes the role ${needs}.`}
      onClick={() => (confirm && !busy ? ask(confirm) : start())}
    >
      {props.children}
    </button>
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
