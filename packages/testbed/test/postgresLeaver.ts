/** Starts a PostgreSQL, says where it is, and never stops it: the other half of the kill -9 test. */
import { startPostgres } from '../src/index.js';

const server = await startPostgres();
console.log(JSON.stringify({ pid: server.pid, dir: server.dir }));
setInterval(() => {}, 1_000);
