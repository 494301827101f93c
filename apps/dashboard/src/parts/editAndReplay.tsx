// Other data for a job that failed: edit it as JSON, see what changes, run it.
import { useState } from 'preact/hooks';
import { diffLines } from '../diff.js';
import { Action } from './action.js';
import { Dialog } from './dialog.js';
import { pretty } from './json.js';
import { Notice } from './notice.js';

export function EditAndReplay(props: {
  title: string;
  data: unknown;
  onClose: () => void;
  replay: (data: { data: unknown } | undefined) => Promise<string>;
}) {
  const before = pretty(props.data);
  const [text, setText] = useState(before);
  const parsed = parse(text);
  const after = 'value' in parsed ? pretty(parsed.value) : before;
  const isChanged = after !== before;
  return (
    <Dialog
      title={props.title}
      onClose={props.onClose}
      unsaved={text !== before}
      foot={
        <Action
          tone="primary"
          disabled={!('value' in parsed)}
          run={() => props.replay('value' in parsed && isChanged ? { data: parsed.value } : undefined)}
        >
          {isChanged ? 'Replay with these data' : 'Replay as it was'}
        </Action>
      }
    >
      <label class="field">
        Data
        <textarea spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {'problem' in parsed && <Notice tone="bad">{parsed.problem}</Notice>}
      {isChanged && 'value' in parsed && <Diff before={before} after={after} />}
    </Dialog>
  );
}

function Diff({ before, after }: { before: string; after: string }) {
  const mark = { same: ' ', removed: '−', added: '+' };
  return (
    <div class="diff" role="region" aria-label="What changes" tabIndex={0}>
      {diffLines(before, after).map(({ kind, text }, i) => (
        <div key={i} class={kind}>
          <span aria-hidden="true">{mark[kind]}</span>
          <span>
            {kind !== 'same' && <span class="hidden">{kind}: </span>}
            {text}
          </span>
        </div>
      ))}
    </div>
  );
}

function parse(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `This is no JSON: ${(error as Error).message}` };
  }
}
