/*
 * The inside of a booth: `boothMain.js <system> <url>` takes the turns of one queue system.
 */
import type { SystemName } from './contender.js';
import { takeTurn, type Taken, type Turn } from './turns.js';
import { takeTurns } from '../booth.js';

const [system, url] = process.argv.slice(2) as [SystemName, string];

takeTurns<Turn, Taken>((turn) => takeTurn(turn, system, url));
