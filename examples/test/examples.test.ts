/**
 * Every example runs against a real Redis and prints what its last comment says:
 *
 *     // Prints:                                    and ends by itself, with exit code 0
 *     // Prints, until Ctrl-C:                      and runs on until it is told to stop
 *     // Prints, with a SIGTERM after its first line:
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { spawnOwned, startRedis, waitUntil, type RedisServer } from '@sluice/testbed';

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url));
const PROGRAMS = fileURLToPath(new URL('../src/', import.meta.url));
/** A program that hangs is ended; one that is slow because the machine is busy is not. */
const TIMEOUT_MS = 90_000;
/** How long an example that runs on is watched for words too many. */
const QUIET_MS = 200;

let redis: RedisServer;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

/** What is done to an example besides starting it. */
const withHelp: Record<string, () => Promise<unknown>> = {
  // Pushed before the worker starts: which of the two comes first is then no question of luck.
  'foreign-producer': () => promisify(execFile)('sh', [`${SOURCES}foreign-producer.sh`, redis.url]),
};

for (const file of readdirSync(SOURCES).filter((name) => name.endsWith('.ts'))) {
  const [, how, text] =
    /^\/\/ Prints(.*):\n((?:\/\/ .*\n)+)$/m.exec(readFileSync(SOURCES + file, 'utf8')) ?? [];
  if (text === undefined) continue;
  const expected = text.replace(/^\/\/ /gm, '');
  const name = basename(file, '.ts');
  test(`the example ${name} prints what it says`, async () => {
    await withHelp[name]?.();
    const program = start(name);
    if (how === ', with a SIGTERM after its first line') {
      await waitUntil('it has begun', () => program.output().includes('\n'), { timeoutMs: TIMEOUT_MS });
      program.child.kill('SIGTERM');
    }
    if (how === ', until Ctrl-C') {
      await waitUntil(`${name} has printed everything`, () => program.output().length >= expected.length, {
        timeoutMs: TIMEOUT_MS,
      });
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      program.child.kill('SIGINT');
      await program.ended;
    } else {
      assert.equal(await program.ended, 0, program.output());
    }
    assert.equal(program.output(), expected);
  });
}

function start(name: string) {
  const child = spawnOwned(process.execPath, [`${PROGRAMS}${name}.js`, redis.url], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const impatience = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  const ended = once(child, 'close').then(([code]) => {
    clearTimeout(impatience);
    return code as number | null;
  });
  return { child, ended, output: () => output };
}
