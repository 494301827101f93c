// A line of text that somebody writes, with its name above and a hint below. `set` hears every letter; `settle` hears what was written when the
// field is left, which is when a filter should ask the server.
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
}

export function Field(props: FieldProps) {
  const { set, settle } = props;
  return (
    <label class={`field ${props.grow ? 'grow' : ''}`}>
      {props.label}
      <input
        class={props.mono ? 'mono' : ''}
        {...kinds[props.type ?? 'text']}
        value={props.value}
        placeholder={props.placeholder}
        disabled={props.disabled}
        maxLength={props.maxLength}
        onInput={set && ((event) => set(event.currentTarget.value))}
        onChange={settle && ((event) => settle(event.currentTarget.value))}
      />
      {props.hint && <span class="hint">{props.hint}</span>}
    </label>
  );
}
