/*
 * The inside of a booth: `boothMain.js <system> <url>` takes the turns that its parent sends, one at a time, and ends when
 * its parent disconnects, or is gone.
 */
import type { Answer } from './booth.js';
import type { SystemName } from './contender.js';
import { takeTurn, type Turn } from './turns.js';

const [system, url] = process.argv.slice(2) as [SystemName, string];
process.once('disconnect', () => process.exit(0));

process.on('message', (turn: Turn) => {
  const send = (answer: Answer): void => void process.send?.(answer);
  takeTurn(turn, system, url).then(send, (error: unknown) => send({ error: String((error as Error).stack) }));
});
