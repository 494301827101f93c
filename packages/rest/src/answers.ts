// What a route answers when all is well, read from the sentence of its declaration: `201 and the new file, or 200 and the replaced one`
// are two answers, `200 {items, next}` names the fields of one.
import { STATUS_CODES } from 'node:http';
import type { Operation } from './openapi.js';
import type { JsonSchema, Route } from './route.js';

type Answering = Pick<Route, 'method' | 'answers'>;
type Content = Record<string, { schema: JsonSchema }>;

const bodiless = new Set(['204', '304']);

/** As OpenAPI has them: by status. */
export function answersOf(route: Answering): Operation['responses'] {
  // A status stands at the beginning, or where the sentence turns to the next case.
  const pieces = route.answers.split(/(?:^|,? or |, )(?=[1-5]\d\d\b)/).filter(Boolean);
  return Object.fromEntries(
    pieces.map((piece) => {
      const [, status = '200', text = ''] = /^([1-5]\d\d)?\s*(.*)$/s.exec(piece) ?? [];
      const content = contentOf(route, status);
      return [status, { description: told(status, text), ...(content && { content }) }];
    }),
  );
}

function told(status: string, text: string): string {
  const plain = text.replace(/^and /, '').trim();
  if (plain === '') return STATUS_CODES[status] ?? status;
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

function contentOf({ method, answers }: Answering, status: string): Content | undefined {
  if (method === 'HEAD' || bodiless.has(status)) return undefined;
  if (answers.includes('text/event-stream')) return { 'text/event-stream': { schema: { type: 'string' } } };
  if (/NDJSON/i.test(answers)) return { 'application/x-ndjson': { schema: { type: 'string' } } };
  // Only bytes of files are served in ranges.
  if (/\b206\b/.test(answers))
    return { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };
  return { 'application/json': { schema: fieldsOf(answers) } };
}

function fieldsOf(answers: string): JsonSchema {
  const [, list] = /\{([\w, ]+)\}/.exec(answers) ?? [];
  const names = list?.split(',').map((name) => name.trim()) ?? [];
  return {
    type: 'object',
    ...(names.length > 0 && { properties: Object.fromEntries(names.map((name) => [name, {}])) }),
  };
}
