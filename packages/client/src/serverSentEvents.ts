/**
 * Reads server-sent events as they come in pieces of text. `EventSource` would do that, too, but it hides why it was refused, and
 * cannot go on where another tab was: only its own reconnections say Last-Event-ID.
 */
export interface ServerSentEvent {
  event: string;
  data: string;
  /** Where to go on; the latest one counts for all events after it. */
  id: string | undefined;
}

/** An event of our server has at most a mebibyte waiting before it; whoever sends more is not our server. */
const LONGEST_BUFFER = 16 * 1_048_576;

export function eventReader(onEvent: (event: ServerSentEvent) => void): (piece: string) => void {
  let rest = '';
  let fields: Partial<Record<string, string>> = {};
  const take = (line: string): void => {
    if (line === '') {
      const { event = 'message', data, id } = fields;
      fields = {};
      if (data !== undefined || id !== undefined) onEvent({ event, data: data ?? '', id });
      return;
    }
    // A line that begins with a colon has an empty name: a comment.
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    const before = name === 'data' ? fields['data'] : undefined;
    fields[name] = before === undefined ? value : `${before}\n${value}`;
  };
  return (piece) => {
    rest += piece;
    if (rest.length > LONGEST_BUFFER) throw new RangeError('an event has no end');
    // A carriage return at the end may be half of a line break.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop()!;
    lines.forEach(take);
  };
}
