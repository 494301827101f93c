// Routes in groups, as people look for them: the first name of the address, and a line on what the group is about. A group that has no
// line here is shown by its name alone.
import type { Route } from './route.js';

const about: Record<string, string> = {
  session: 'Sign in with a key, see who you are, sign out.',
  overview: 'Everything at a glance.',
  live: 'What changes, as it changes.',
  alerts: 'Thresholds, and which of them are crossed.',
  uploads: 'Files that come in pieces, survive interruptions and report their progress.',
  files: 'Files by their path: one request uploads, downloads or deletes.',
  nodes: 'Files and folders by their id: list, move, download.',
  drives: 'Where files are kept.',
  tokens: 'Short-lived permission for browsers that upload.',
  links: 'Signed addresses for those who have no key.',
  queues: 'Queues with their limits, jobs, dead letters, schedules and history.',
  jobs: 'Jobs by their id, in whichever queue.',
  retries: 'Jobs that wait for their next attempt.',
  dead: 'Jobs that ran out of attempts, by the cause of their death.',
  operations: 'Changes of many things at once, with their progress.',
  workers: 'Who works on what.',
  schedules: 'What is added again and again.',
  cache: 'What is remembered, why, and until when.',
  events: 'What happened, in order.',
  trace: 'One id through all parts: upload, record, event, job, result.',
  redis: 'How the Redis behind all this is doing.',
  keys: 'Who may do what.',
  audit: 'Who did what.',
  webhooks: 'Events for other servers, signed and retried.',
  internal: 'For services that report to this one.',
};

export function groupOf({ url }: Pick<Route, 'url'>): string {
  const names = url.split('/').filter(Boolean);
  return (names[0] === 'v1' ? names[1] : names[0]) ?? '';
}

/** The groups of these routes in the order above; those without a line come last. */
export function groupsOf(routes: readonly Pick<Route, 'url'>[]): { name: string; description?: string }[] {
  const order = Object.keys(about);
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  const names = [...new Set(routes.map(groupOf))].sort(
    (one, other) => place(one) - place(other) || one.localeCompare(other),
  );
  return names.map((name) => ({
    name,
    ...(Object.hasOwn(about, name) && { description: about[name]! }),
  }));
}
