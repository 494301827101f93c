/** Starts a server, and something that starts another process; says where they are, and never stops them: the other half of the kill -9 test. */
import { once } from 'node:events';
import { makeOwnedFolder, spawnOwned, startRedis } from '../src/index.js';

const server = await startRedis();
const stopped = await startRedis();
await stopped.stop();
const starter = spawnOwned('sh', ['-c', 'sleep 1000 & echo $!; wait'], {
  cwd: makeOwnedFolder('starter'),
  stdio: ['ignore', 'pipe', 'ignore'],
});
const [startedBy] = (await once(starter.stdout!, 'data')) as [Buffer];
console.log(JSON.stringify({ pids: [server.pid, Number(startedBy)], dir: server.dir }));
setInterval(() => {}, 1_000);
