import { consoleLogger, defineErrors, isSluiceError, sleep, startStop } from '@sluice/base';

const errors = defineErrors({
  GATE_STUCK: { message: (d: { gate: string }) => `gate ${d.gate} is stuck`, retryable: true },
});

const log = consoleLogger({ level: 'info' });
const gate = startStop({
  name: 'gate',
  start: () => log.info({ gate: 'north' }, 'opening'),
  stop: () => sleep(5),
});

await gate.start();
await gate.start(); // does nothing: it runs already
try {
  throw errors.GATE_STUCK({ gate: 'north' });
} catch (error) {
  if (isSluiceError(error, 'GATE_STUCK')) log.warn({ retryable: error.retryable }, error.message);
}
await gate.stop(1_000);
