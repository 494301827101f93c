import { isSluiceError } from '@sluice/base';
import { RedisLink } from '@sluice/redis';

const url = process.env['SLUICE_EXAMPLE_REDIS'] ?? 'redis://127.0.0.1:6379';
const link = new RedisLink(url, { name: 'example' });

await link.call('SET', ['greeting', 'hello']);
console.log(String(await link.call('GET', ['greeting']))); // replies are bytes

try {
  await link.call('GET', ['greeting'], { deadlineMs: 500 }); // answered or failed within half a second
} catch (error) {
  if (isSluiceError(error, 'REDIS_UNAVAILABLE')) console.log(error.message);
}
link.close();
