/** Starts a PostgreSQL of its own in the folder it is given, says where, and waits: the other half of the kill -9 tests. */
import { silentLogger } from '@sluice/base';
import { startPostgresProcess } from '../src/postgresProcess.js';

const postgres = await startPostgresProcess({ dataDir: process.argv[2]!, logger: silentLogger });
process.on('SIGTERM', () => void postgres.stop(10_000).then(() => process.exit(0)));
console.log(JSON.stringify({ pid: postgres.pid, url: postgres.url }));
setInterval(() => {}, 1_000);
