// The scripts of inspect: the only two things it writes.
import { loadScript } from '@sluice/redis';

const folder = new URL('../../lua/', import.meta.url);

export const scripts = {
  lead: loadScript(folder, 'lead', ['writer'], ['token', 'leaseMs']),
  roll: loadScript(
    folder,
    'roll',
    ['writer', 'rolled', 'minutes', 'hours'],
    [
      'token',
      'series',
      'minute',
      'minuteAt',
      'minuteRecord',
      'minuteKeepMs',
      'hourAt',
      'hourRecord',
      'hourKeepMs',
    ],
  ),
} as const;
