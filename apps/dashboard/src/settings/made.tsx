// What keys and webhooks have in common: a dialog that makes one, and a secret that is shown once.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useWork } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Copy } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';

/** Shows a secret; resolves nothing, so that it can end an action. */
export type Reveal = (secret: string) => void;

/** A list of things that have a secret, with a button for a new one. */
export function MadePanel(props: {
  title: string;
  /** What is made: `key`. */
  one: string;
  secretTitle: string;
  onMade: () => void;
  draft: (made: Reveal, close: () => void) => ComponentChildren;
  children: (reveal: Reveal) => ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const made = (text: string): void => {
    setOpen(false);
    setSecret(text);
    props.onMade();
  };
  return (
    <Panel
      title={props.title}
      flush
      actions={
        <button class="button small primary" type="button" onClick={() => setOpen(true)}>
          New {props.one}
        </button>
      }
    >
      {props.children(setSecret)}
      {isOpen && props.draft(made, () => setOpen(false))}
      {secret !== null && (
        <Dialog title={props.secretTitle} narrow onClose={() => setSecret(null)}>
          <p>It is shown this once. Keep it where secrets are kept.</p>
          <code class="secret">{secret}</code>
          <Copy text={secret} what="secret" />
        </Dialog>
      )}
    </Panel>
  );
}

/** The dialog around the fields of something new. */
export function Draft(props: {
  title: string;
  isReady: boolean;
  make: () => Promise<string>;
  onMade: Reveal;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const { busy, start } = useWork(async () => {
    props.onMade(await props.make());
    return undefined;
  });
  return (
    <Dialog
      title={props.title}
      narrow
      onClose={props.onClose}
      foot={
        <button
          class="button primary"
          type="button"
          disabled={busy || !props.isReady}
          aria-busy={busy}
          onClick={start}
        >
          Make it
        </button>
      }
    >
      {props.children}
    </Dialog>
  );
}
