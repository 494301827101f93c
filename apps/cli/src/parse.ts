// What people write on a command line, made into values: spans, moments, counts, bytes, JSON. A mistake names what was expected.
import { cliErrors } from './errors.js';
import { spans } from './human.js';

const spanUnits: Record<string, number> = {
  ms: 1,
  s: spans.secondMs,
  m: spans.minuteMs,
  min: spans.minuteMs,
  h: spans.hourMs,
  d: spans.dayMs,
};
const byteUnits: Record<string, number> = { '': 1, k: 1_024, m: 1_048_576, g: 1_073_741_824 };

/** `90s`, `15m`, `2h`, `7d`, `500ms`; several may follow each other: `1h30m`. */
export function parseSpan(text: string): number {
  const parts = [...text.replace(/\s/g, '').matchAll(/(\d+(?:\.\d+)?)(ms|min|[smhd])/g)];
  if (parts.length === 0 || parts.map(([all]) => all).join('') !== text.replace(/\s/g, ''))
    throw wrong(text, 'a span like 90s, 15m, 2h or 7d');
  return Math.round(parts.reduce((sum, [, value, unit]) => sum + Number(value) * spanUnits[unit!]!, 0));
}

/** A moment (`2026-03-01T14:00`), or a span that is counted back from now (`2h`). */
export function parseMoment(text: string): number {
  if (/^\d+(\.\d+)?(ms|min|[smhd])/.test(text)) return Date.now() - parseSpan(text);
  const at = Date.parse(text);
  if (Number.isNaN(at))
    throw wrong(text, 'a moment like 2026-03-01T14:00, or a span like 2h for that long ago');
  return at;
}

/** A moment ahead: a span is counted from now on. */
export function parseLater(text: string): number {
  return /^\d+(\.\d+)?(ms|min|[smhd])/.test(text) ? Date.now() + parseSpan(text) : parseMoment(text);
}

export function parseCount(text: string): number {
  const value = Number(text.replace(/[,_]/g, ''));
  if (!Number.isSafeInteger(value) || value < 0) throw wrong(text, 'a whole number');
  return value;
}

export function parsePositive(text: string): number {
  const value = parseCount(text);
  if (value === 0) throw wrong(text, 'a whole number from 1 on');
  return value;
}

/** `8M`, `512k`, `1048576`. */
export function parseBytes(text: string): number {
  const [, value, unit] = /^(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?$/i.exec(text.trim()) ?? [];
  if (value === undefined) throw wrong(text, 'bytes like 512k, 8M or 1G');
  return Math.round(Number(value) * byteUnits[unit!.toLowerCase()]!);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw cliErrors.USAGE({ reason: `this is no JSON: ${(error as Error).message}` }, { cause: error });
  }
}

/** A value of a cache's key or a field: JSON if it is that, otherwise the text itself. */
export function parseLoose(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** `100/1m`: so many per span. */
export function parseRate(text: string): { max: number; perMs: number } {
  const [, max, span] = /^(\d+)\/(.+)$/.exec(text) ?? [];
  if (max === undefined || span === undefined) throw wrong(text, 'a rate like 100/1m or 5/1s');
  return { max: parsePositive(max), perMs: parseSpan(/^\d/.test(span) ? span : `1${span}`) };
}

/** `name=value`, given several times. */
export function gatherPair(text: string, gathered: Record<string, string> = {}): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw wrong(text, 'name=value');
  return { ...gathered, [text.slice(0, equals)]: text.slice(equals + 1) };
}

export function gather(text: string, gathered: string[] = []): string[] {
  return [...gathered, text];
}

function wrong(text: string, wanted: string): Error {
  return cliErrors.USAGE({ reason: `"${text}" is not ${wanted}` });
}
