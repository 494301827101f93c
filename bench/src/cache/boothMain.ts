/*
 * The inside of a booth: `boothMain.js <system> <url>` takes the turns of one cache.
 */
import type { ContenderName } from './contender.js';
import { takeTurn, type Turn } from './turns.js';
import { takeTurns } from '../booth.js';

const [name, url] = process.argv.slice(2) as [ContenderName, string];

takeTurns((turn: Turn) => takeTurn(turn, name, url));
