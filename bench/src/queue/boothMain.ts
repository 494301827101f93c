/*
 * The inside of a booth: `boothMain.js <system> <url>` takes the turns of one queue system.
 */
import type { SystemName } from './contender.js';
import { takeTurn, type Turn } from './turns.js';
import { takeTurns } from '../booth.js';

const [system, url] = process.argv.slice(2) as [SystemName, string];

takeTurns((turn: Turn) => takeTurn(turn, system, url));
