/**
 * `npm start`: prepares what is missing, then becomes the server. The server runs in this very process, so that a
 * Ctrl-C reaches it directly and npm waits for its orderly end.
 */
import { prepare } from './prepare.mjs';

await prepare({ redis: !process.env.SLUICE_REDIS_URL });
await import('../apps/server/dist/src/main.js');
