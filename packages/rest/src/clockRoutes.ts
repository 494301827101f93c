// What time it is here and in PostgreSQL. Leases, expiries and histories follow several clocks; whoever looks for a fault compares them.
import type { Route } from './route.js';

export const clockRoutes: Route[] = [
  {
    method: 'GET',
    url: '/v1/clocks',
    needs: 'viewer',
    of: 'installation',
    summary: 'What time it is here and in PostgreSQL, read at the same moment as nearly as can be.',
    answers: '200 {serverMs, sqlMs, tookMs}; the clock of PostgreSQL was read within tookMs',
    handle: async ({ parts, reply }) => {
      const beganMs = Date.now();
      const sqlMs = await parts.records.nowMs();
      const endedMs = Date.now();
      reply.header('Cache-Control', 'no-store');
      return { serverMs: Math.round((beganMs + endedMs) / 2), sqlMs, tookMs: endedMs - beganMs };
    },
  },
];
