// Which queue? By its name; those that are known are offered. `writable`: to put jobs into, which nobody does with those of Sluice itself.
import { overview } from '../data/live.js';
import { Field } from './field.js';

export function QueueField(props: {
  value: string;
  set: (name: string) => void;
  all?: boolean;
  writable?: boolean;
}) {
  const known = overview.value?.queues ?? [];
  const names = known.filter(({ reserved }) => !props.writable || !reserved).map(({ name }) => name);
  if (names.length === 0)
    return <Field label="Queue" value={props.value} placeholder="its name" settle={props.set} />;
  const isUnknown = props.value !== '' && !names.includes(props.value);
  return (
    <label class="field">
      Queue
      <select value={props.value} onChange={(event) => props.set(event.currentTarget.value)}>
        {(props.all || props.value === '') && (
          <option value="">{props.all ? 'all queues' : 'choose one'}</option>
        )}
        {isUnknown && <option value={props.value}>{props.value}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
