// The choice how far back the charts of a page reach.
import { filter } from '../place.js';
import { chosenSpan, spans } from '../spans.js';

export function SpanField() {
  return (
    <label class="check">
      <span>History</span>
      <select value={chosenSpan.value.name} onChange={(event) => filter({ span: event.currentTarget.value })}>
        {spans.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
