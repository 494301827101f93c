// The registry of pages: what stands in the navigation, what the address leads to, which key leads there. A new page is one entry here and one
// file under pages/, loaded when it is first visited. What else a new part may touch: panels.ts for a panel on the overview, severity.ts for what
// to do about its kinds of trouble, targets.ts for the titles of its goals, pages/trace.tsx for its step of the flow, data/shapes.ts for its
// answers. What the last four do not know yet is shown with the words of the server, so none of them has to come first.
import type { ComponentType } from 'preact';
import type { Overview } from './data/shapes.js';

export interface PageEntry {
  /** Parts of the path; `:name` takes any text and is handed to the page. */
  path: string;
  title: string;
  /** Under which heading of the navigation; without one it is reached by links only. */
  group?: 'Work' | 'Files' | 'System';
  /** Pressed after `g`. */
  letter?: string;
  /** Only for keys of the whole installation. */
  installation?: true;
  /** Only for admins. */
  admin?: true;
  /** A number beside the title; `bad` asks for attention. */
  count?: (overview: Overview) => { value: number; bad?: boolean };
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

export interface PageProps {
  params: Record<string, string>;
}

export const pages: readonly PageEntry[] = [
  {
    path: '',
    title: 'Overview',
    group: 'Work',
    letter: 'o',
    installation: true,
    load: () => import('./pages/overview.js'),
  },
  {
    path: 'queues',
    title: 'Queues',
    group: 'Work',
    letter: 'q',
    installation: true,
    load: () => import('./pages/queues.js'),
  },
  { path: 'queues/:queue', title: 'Queue', installation: true, load: () => import('./pages/queue.js') },
  { path: 'jobs', title: 'Jobs', group: 'Work', letter: 'j', load: () => import('./pages/jobs.js') },
  { path: 'jobs/:queue/:id', title: 'Job', load: () => import('./pages/job.js') },
  {
    path: 'retries',
    title: 'Retries',
    group: 'Work',
    letter: 'r',
    count: ({ retries }) => ({ value: retries.count }),
    load: () => import('./pages/retries.js'),
  },
  {
    path: 'dead',
    title: 'Dead letters',
    group: 'Work',
    letter: 'd',
    count: ({ dead }) => ({ value: dead.letters, bad: true }),
    load: () => import('./pages/dead.js'),
  },
  {
    path: 'workers',
    title: 'Workers',
    group: 'Work',
    letter: 'w',
    installation: true,
    count: ({ workers }) => ({ value: workers }),
    load: () => import('./pages/workers.js'),
  },
  {
    path: 'schedules',
    title: 'Schedules',
    group: 'Work',
    letter: 's',
    installation: true,
    load: () => import('./pages/schedules.js'),
  },
  {
    path: 'uploads',
    title: 'Uploads',
    group: 'Files',
    letter: 'u',
    count: ({ uploads }) => ({ value: uploads.open }),
    load: () => import('./pages/uploads.js'),
  },
  { path: 'files', title: 'Files', group: 'Files', letter: 'f', load: () => import('./pages/files.js') },
  { path: 'events', title: 'Events', group: 'Files', letter: 'e', load: () => import('./pages/events.js') },
  { path: 'trace', title: 'Trace', group: 'Files', letter: 't', load: () => import('./pages/trace.js') },
  {
    path: 'cache',
    title: 'Cache',
    group: 'System',
    letter: 'c',
    installation: true,
    load: () => import('./pages/cache.js'),
  },
  {
    path: 'redis',
    title: 'Redis',
    group: 'System',
    letter: 'i',
    installation: true,
    load: () => import('./pages/redis.js'),
  },
  {
    path: 'audit',
    title: 'Audit',
    group: 'System',
    letter: 'a',
    admin: true,
    load: () => import('./pages/audit.js'),
  },
  {
    path: 'settings',
    title: 'Settings',
    group: 'System',
    letter: 'x',
    load: () => import('./pages/settings.js'),
  },
];

/** The page an address leads to, with what the variable parts of its path are. */
export function pageFor(
  segments: readonly string[],
): { entry: PageEntry; params: Record<string, string> } | null {
  for (const entry of pages) {
    const shape = entry.path.split('/').filter(Boolean);
    if (shape.length !== segments.length) continue;
    const isMatch = shape.every((part, i) => part.startsWith(':') || part === segments[i]);
    if (!isMatch) continue;
    const params = Object.fromEntries(
      shape.flatMap((part, i) => (part.startsWith(':') ? [[part.slice(1), segments[i]!]] : [])),
    ) as Record<string, string>;
    return { entry, params };
  }
  return null;
}
