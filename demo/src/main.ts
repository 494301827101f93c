// `npm run demo`: work for a running server until somebody ends it.
import { readConfig } from './config.js';
import { startFiles } from './files.js';
import { startWork } from './work.js';

const told = new Set<string>();
const config = readConfig(process.argv.slice(2));
const problem = typeof config === 'string' ? config : await problemOf(config.url);
if (typeof config === 'string' || problem !== undefined) {
  console.error(`demo: ${problem}`);
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

/** Before any work is made: jobs would be in Redis, and nobody would show them. */
async function problemOf(url: string): Promise<string | undefined> {
  try {
    await fetch(`${url}/healthz`);
    return undefined;
  } catch {
    return `no server answers at ${url}: start one with "npm start", or say in SLUICE_URL where it is`;
  }
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
