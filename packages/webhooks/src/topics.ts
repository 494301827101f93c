// Topics are words with dots between them; a pattern may end with `*`, which stands for whatever follows:
//
//   repository.documents.created   one topic
//   repository.documents.*         all that happens to documents
//   *                              everything
//
// See docs/guides/webhooks.md for all topics there are.
import { webhookErrors } from './errors.js';

const mostTopics = 50;
const pattern = /^(\*|[a-z]{1,40}(\.[a-z]{1,40}){0,4}(\.\*)?)$/;

export function checkTopics(topics: readonly string[]): string[] {
  const refuse = (reason: string) => webhookErrors.WEBHOOK_INVALID({ field: 'topics', reason });
  if (topics.length === 0 || topics.length > mostTopics) throw refuse(`from 1 to ${mostTopics} are possible`);
  const wrong = topics.find((topic) => !pattern.test(topic));
  if (wrong !== undefined)
    throw refuse(`"${wrong.slice(0, 80)}" is no topic such as repository.documents.created or jobs.*`);
  return [...new Set(topics)];
}

export function matches(patterns: readonly string[], topic: string): boolean {
  return patterns.some((each) => (each.endsWith('*') ? topic.startsWith(each.slice(0, -1)) : each === topic));
}

/** Whether any topic that begins like this would match. */
export function mayMatch(patterns: readonly string[], beginning: string): boolean {
  return patterns.some((each) => matches([each], beginning) || each.startsWith(beginning));
}
