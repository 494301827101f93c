// Replay or discard many dead letters: a dry run first, a rate if wanted, then an operation on the server that can be watched and cancelled.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { moveDead, previewDead, type Choice } from '../data/actions.js';
import { may } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { plural } from '../format.js';
import { Action } from './action.js';
import { Dialog, openDialog } from './dialog.js';
import { Failure, Waiting } from './notice.js';
import { Ago } from './time.js';

interface BulkProps {
  word: 'replay' | 'discard';
  queue: string;
  choice: Choice;
  /** The letters in words. */
  what: string;
  onDone: () => void;
  small?: boolean;
  children?: ComponentChildren;
}

export function BulkMove(props: BulkProps) {
  const title = props.word === 'replay' ? 'Replay' : 'Discard';
  return (
    <button
      class={`button ${props.word === 'discard' ? 'danger' : ''} ${props.small ? 'small' : ''}`}
      type="button"
      disabled={!may('operator')}
      title={may('operator') ? undefined : 'Your key may not do this; it takes the role operator.'}
      aria-label={props.children === undefined ? `${title} ${props.what}` : undefined}
      onClick={() => openDialog((close) => <BulkDialog {...props} title={title} onClose={close} />)}
    >
      {props.children ?? title}
    </button>
  );
}

function BulkDialog(props: BulkProps & { title: string; onClose: () => void }) {
  const { word, queue, choice, what, title } = props;
  const [perSecond, setPerSecond] = useState('');
  // What is no number has no value: without asking the field, it would mean as fast as possible.
  const [isRate, setIsRate] = useState(true);
  const preview = useAnswer(`${word} ${queue} ${JSON.stringify(choice)}`, () =>
    previewDead(queue, word, choice),
  );
  const total = preview.data?.total;
  return (
    <Dialog
      title={`${title} ${what}`}
      onClose={props.onClose}
      foot={
        <>
          <button class="button" type="button" onClick={props.onClose}>
            Keep them
          </button>
          <Action
            tone={word === 'discard' ? 'danger' : 'primary'}
            disabled={!total || !isRate}
            run={async () => {
              await moveDead(queue, word, choice, perSecond === '' ? undefined : Number(perSecond));
              return `Started; the progress is on this page.`;
            }}
            onDone={() => {
              props.onClose();
              props.onDone();
            }}
          >
            {total === undefined ? title : `${title} ${plural(total, 'letter')}`}
          </Action>
        </>
      }
    >
      {preview.error !== undefined ? (
        <Failure error={preview.error} again={preview.again} />
      ) : preview.data === undefined ? (
        <Waiting what="Counting, nothing is changed yet" />
      ) : (
        <>
          <p>
            {word === 'replay'
              ? `${plural(preview.data.total, 'job')} of ${queue} will run again, the oldest first.`
              : `${plural(preview.data.total, 'letter')} of ${queue} will be given up for good. This cannot be undone; export them first if you may need them.`}
          </p>
          {preview.data.sample.length > 0 && (
            <ul>
              {preview.data.sample.map(({ id, title: cause, lastFailureMs }) => (
                <li key={id} class="wrap">
                  <code>{id}</code> <span class="soft">{cause}</span>{' '}
                  <span class="faint">
                    <Ago at={lastFailureMs} />
                  </span>
                </li>
              ))}
              {preview.data.total > preview.data.sample.length && <li class="faint">and more</li>}
            </ul>
          )}
          <label class="field">
            At most per second
            <input
              type="number"
              min={1}
              max={1_000_000}
              step={1}
              value={perSecond}
              placeholder="as fast as possible"
              onInput={(event) => {
                setPerSecond(event.currentTarget.value);
                setIsRate(event.currentTarget.validity.valid);
              }}
            />
            <span class={`hint ${isRate ? '' : 'text-bad'}`}>
              {isRate ? 'A rate spares what the jobs failed on.' : 'A whole number from 1 to 1,000,000.'}
            </span>
          </label>
        </>
      )}
    </Dialog>
  );
}
