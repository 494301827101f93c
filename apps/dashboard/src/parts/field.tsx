// A line of text that somebody writes, with its name above and a hint below. `set` hears every letter; `settle` hears what was written when the
// field is left, which is when a filter should ask the server. Until then the text is kept here: a page renders whenever news come, and what is
// half written must outlive that.
import { useEffect, useId, useState } from 'preact/hooks';

/** One by one, because each type of input has attributes of its own. */
const kinds = { text: { type: 'text' }, search: { type: 'search' }, url: { type: 'url' } } as const;

export interface FieldProps {
  label: string;
  value: string;
  set?: (text: string) => void;
  settle?: (text: string) => void;
  placeholder?: string;
  hint?: string;
  type?: keyof typeof kinds;
  mono?: boolean;
  /** Takes the room that is left. */
  grow?: boolean;
  disabled?: boolean;
  maxLength?: number;
  /** Offered while somebody writes; anything else may be written, too. */
  offered?: readonly string[];
}

export function Field(props: FieldProps) {
  const { set, settle, offered } = props;
  const id = useId();
  const [draft, setDraft] = useState<string | null>(null);
  // A value that comes from elsewhere, such as a link that sets the filter, replaces what was being written.
  useEffect(() => setDraft(null), [props.value]);
  const write = (text: string): void => {
    if (settle) setDraft(text);
    set?.(text);
  };
  const leave = (text: string): void => {
    settle?.(text);
    setDraft(null);
  };
  return (
    <label class={`field ${props.grow ? 'grow' : ''}`}>
      {props.label}
      <input
        class={props.mono ? 'mono' : ''}
        {...kinds[props.type ?? 'text']}
        value={draft ?? props.value}
        placeholder={props.placeholder}
        disabled={props.disabled}
        maxLength={props.maxLength}
        list={offered && id}
        onInput={(event) => write(event.currentTarget.value)}
        onChange={(event) => leave(event.currentTarget.value)}
      />
      {offered && (
        <datalist id={id}>
          {offered.map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
      {props.hint && <span class="hint">{props.hint}</span>}
    </label>
  );
}
