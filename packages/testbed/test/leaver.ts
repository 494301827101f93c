/** Starts a server, says where it is, and never stops it: the other half of the kill -9 test. */
import { startRedis } from '../src/index.js';

const server = await startRedis();
const stopped = await startRedis();
await stopped.stop();
console.log(JSON.stringify({ pid: server.pid, dir: server.dir }));
setInterval(() => {}, 1_000);
