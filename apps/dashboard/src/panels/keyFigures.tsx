// The large figures on top of the overview.
import type { PanelProps } from '../panels.js';
import { Figures } from '../parts/panel.js';
import { NextIn } from '../parts/time.js';
import { atLeast, compact, decimal, plural, rate, span } from '../format.js';

const longWaitMs = 5 * 60_000;

export function KeyFigures({ overview }: PanelProps) {
  const { counts, rates, workers, dead, retries, oldestWaitingMs, uploads, outbox } = overview;
  return (
    <Figures
      label="Key figures"
      items={[
        {
          label: 'Waiting',
          value: compact(counts.waiting),
          about: counts.waiting > 0 ? `oldest ${span(oldestWaitingMs)}` : 'nothing waits',
          tone: oldestWaitingMs > longWaitMs ? 'warn' : 'neutral',
          href: '/queues',
        },
        {
          label: 'Running',
          value: compact(counts.active),
          about: workers === 0 ? 'no workers' : `${compact(workers)} ${workers === 1 ? 'worker' : 'workers'}`,
          tone: workers === 0 && counts.waiting > 0 ? 'bad' : 'neutral',
          href: '/workers',
        },
        {
          label: 'Done',
          value: rate(rates?.done),
          unit: '/s',
          about: rates ? `${rate(rates.added)}/s added` : 'measuring',
          href: '/queues',
        },
        {
          label: 'Failing',
          value: rate(rates ? rates.failed + rates.died : null),
          unit: '/s',
          about: rates ? `${rate(rates.died)}/s die` : 'measuring',
          tone: rates && rates.died > 0 ? 'bad' : 'neutral',
          href: '/retries',
        },
        {
          label: 'Dead letters',
          value: compact(dead.letters),
          about: dead.letters > 0 ? `tried ${decimal(dead.averageAttempts)} times each` : 'none',
          tone: dead.letters > 0 ? 'bad' : 'ok',
          href: '/dead',
        },
        {
          label: 'Retries',
          value: atLeast(compact(retries.count), retries.complete),
          about: retries.nextMs === null ? 'none' : <NextIn at={retries.nextMs} />,
          href: '/retries',
        },
        {
          label: 'Uploads open',
          value: compact(uploads.open),
          about: outbox.waiting > 0 ? `${plural(outbox.waiting, 'event')} to tell` : 'every event told',
          href: '/uploads',
        },
      ]}
    />
  );
}
