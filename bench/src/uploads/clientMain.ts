/*
 * The inside of a client's process: `clientMain.js <JSON of its options>` takes the turns of one side.
 */
import type { SenderOptions } from './sender.js';
import { Client, type Turn } from './turns.js';
import { takeTurns } from '../booth.js';

const options = JSON.parse(process.argv[2]!) as SenderOptions & { longestFileBytes: number };
const client = new Client(options, options.longestFileBytes);

takeTurns((turn: Turn) => client.takeTurn(turn));
