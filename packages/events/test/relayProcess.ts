/** A relay as a process of its own, so that it can be killed: the addresses of PostgreSQL and Redis are its arguments. */
import { openRecords } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { Relay, RedisStreamSink } from '../src/index.js';

const [postgresUrl, redisUrl] = process.argv.slice(2) as [string, string];
const records = await openRecords({ url: postgresUrl });
const sink = new RedisStreamSink({ redis: new RedisLink(redisUrl) });
await new Relay({ records, sink, batch: 100 }).start();
