// `npm run demo`: work for a running server until somebody ends it.
import { readConfig } from './config.js';
import { startFiles } from './files.js';
import { startWork } from './work.js';

const told = new Set<string>();
const config = readConfig(process.argv.slice(2));
if (typeof config === 'string') {
  console.error(`demo: ${config}`);
  process.exitCode = 2;
} else {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort());
  const limit = config.seconds && setTimeout(() => ending.abort(), config.seconds * 1_000);
  const { url, key, redisUrl } = config;
  const stopWork = await startWork(redisUrl, ending.signal, tell);
  console.log(`Work is under way. Look at ${url}; Ctrl-C ends it.`);
  await startFiles({ url, key, signal: ending.signal, onProblem: tell });
  await stopWork();
  clearTimeout(limit);
  console.log('Ended; what was made stays.');
}

/** Each kind of problem once: a demo that complains four times a second helps nobody. */
function tell(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const kind = (error as { code?: string }).code ?? text;
  if (told.has(kind)) return;
  told.add(kind);
  console.error(`demo: ${text}${cause}`);
}
