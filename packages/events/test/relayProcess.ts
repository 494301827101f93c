/**
 * A relay as a process of its own, so that it can be killed: the addresses of PostgreSQL and Redis are its arguments. It takes its time with
 * each batch, so that it is not done before somebody has noticed that it is in the middle.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { openRecords } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { Relay, RedisStreamSink, type EventSink } from '../src/index.js';

const PAUSE_MS = 100;

const [postgresUrl, redisUrl] = process.argv.slice(2) as [string, string];
const records = await openRecords({ url: postgresUrl });
const stream = new RedisStreamSink({ redis: new RedisLink(redisUrl) });
const sink: EventSink = {
  publish: async (events) => {
    await sleep(PAUSE_MS);
    await stream.publish(events);
  },
};
await new Relay({ records, sink, batch: 100 }).start();
