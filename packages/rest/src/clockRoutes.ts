// What time it is here and in PostgreSQL, and which PostgreSQL that is. Leases, expiries and histories follow several clocks; whoever looks for a fault compares them.
import type { Route } from './route.js';

export const clockRoutes: Route[] = [
  {
    method: 'GET',
    url: '/v1/clocks',
    needs: 'viewer',
    of: 'installation',
    summary: 'What time it is here and in PostgreSQL, read at the same moment as nearly as can be.',
    answers: '200 {serverMs, sqlMs, sqlVersion, tookMs}; the clock of PostgreSQL was read within tookMs',
    handle: async ({ parts, reply }) => {
      const beganMs = Date.now();
      const { nowMs: sqlMs, version: sqlVersion } = await parts.records.clock();
      const endedMs = Date.now();
      reply.header('Cache-Control', 'no-store');
      const serverMs = Math.round((beganMs + endedMs) / 2);
      return { serverMs, sqlMs, sqlVersion, tookMs: endedMs - beganMs };
    },
  },
];
