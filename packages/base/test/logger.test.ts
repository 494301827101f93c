import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleLogger, defineErrors, type Logger, type LogLevel, silentLogger } from '../src/index.js';

function recorder(level?: LogLevel): { log: Logger; lines: string[]; records: () => unknown[] } {
  const lines: string[] = [];
  const log = consoleLogger({ level, write: (line) => void lines.push(line), now: () => 0 });
  return { log, lines, records: () => lines.map((line) => JSON.parse(line) as unknown) };
}

test('a record is one JSON line, also when its text has many', () => {
  const { log, lines, records } = recorder();
  log.info({ queue: 'mail', note: 'a\nb' }, 'two\nlines');
  assert.equal(lines[0]?.indexOf('\n'), lines[0]!.length - 1);
  assert.deepEqual(records(), [
    { level: 'info', time: '1970-01-01T00:00:00.000Z', queue: 'mail', note: 'a\nb', msg: 'two\nlines' },
  ]);
});

test('records below the level are not written', () => {
  const { log, lines } = recorder('warn');
  for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]({}, level);
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
    ['warn', 'error'],
  );
});

test('errors are written with name, message, code, details and cause', () => {
  const { log, records } = recorder();
  const errors = defineErrors({
    FULL: { message: (d: { queue: string }) => `${d.queue} full`, retryable: true },
  });
  log.error({ err: errors.FULL({ queue: 'mail' }, { cause: new TypeError('root') }) }, 'add failed');
  const { err } = records()[0] as { err: Record<string, unknown> & { cause: Record<string, unknown> } };
  assert.equal(err['name'], 'SluiceError');
  assert.equal(err['message'], 'mail full');
  assert.equal(err['code'], 'FULL');
  assert.deepEqual(err['details'], { queue: 'mail' });
  assert.match(String(err['stack']), /logger\.test/);
  assert.equal(err.cause['message'], 'root');
});

test('fields that cannot be written never throw and never hide the message', () => {
  const { log, records } = recorder();
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  log.info({ cycle }, 'cycle');
  log.info({ size: 12n }, 'big');
  log.info(
    {
      get broken() {
        throw new Error('getter');
      },
    },
    'getter',
  );
  assert.deepEqual(
    records().map((record) => (record as { msg: string }).msg),
    ['cycle', 'big', 'getter'],
  );
  assert.equal((records()[1] as { size: string }).size, '12');
});

test('the silent logger writes nothing', () => {
  for (const level of ['debug', 'info', 'warn', 'error'] as const)
    assert.equal(silentLogger[level]({}, ''), undefined);
});
