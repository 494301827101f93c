// What stands where there is nothing, or nothing yet, or where something went wrong: each says what to do.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ApiError, messageOf } from '../data/api.js';
import type { Tone } from './panel.js';
import { say } from './toast.js';

/** `aside` stands beside what is announced and is not: a text that changes every second would be read out every second. */
export function Notice(props: {
  tone?: Tone;
  actions?: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class={`notice ${props.tone ?? ''}`}>
      <div role={props.tone === 'bad' ? 'alert' : 'status'}>{props.children}</div>
      {props.aside && <div class="soft">{props.aside}</div>}
      {props.actions && <div class="actions">{props.actions}</div>}
    </div>
  );
}

export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 403);
  const button = again && (
    <button class="button small" type="button" onClick={again}>
      Try again
    </button>
  );
  return (
    <Notice tone={isMissing ? 'warn' : 'bad'} actions={button}>
      {messageOf(error)}
    </Notice>
  );
}

export function Waiting({ what = 'Loading' }: { what?: string }) {
  return (
    <div class="wait" role="status">
      {what}…
    </div>
  );
}

export function Empty(props: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h3>{props.title}</h3>
      {props.children && <p>{props.children}</p>}
      {props.command && <Command text={props.command} />}
    </div>
  );
}

/** A line for the terminal, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} what="command" />
    </div>
  );
}

export function Copy({ text, what }: { text: string; what: string }) {
  const [copied, setCopied] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const copy = async (): Promise<void> => {
    await toClipboard(text, button.current!);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button
      ref={button}
      class="button plain small"
      type="button"
      aria-label={`Copy the ${what}`}
      onClick={() => void copy().catch(() => say('The browser does not let this page copy.', 'bad'))}
    >
      {copied ? 'Copied' : 'Copy'}
    </button>
  );
}

/** Browsers keep the clipboard from pages without TLS, and a server in a network of one's own often has none: there a field is copied. */
async function toClipboard(text: string, button: HTMLElement): Promise<void> {
  const { clipboard } = navigator as Partial<Navigator>;
  if (clipboard) return clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.className = 'hidden';
  field.value = text;
  // Beside the button: while a dialog is open, nothing outside of it can be selected.
  button.after(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  button.focus();
  if (!isDone) throw new Error('the browser refused');
}
