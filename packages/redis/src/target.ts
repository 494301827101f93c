// Where Redis is. A target is a plain value (it also travels to the heartbeat thread), written either as
// a URL or as an object. Four shapes: one server, a cluster, sentinels, and each of them over TLS.
import { readFileSync } from 'node:fs';
import { redisErrors } from './errors.js';

export interface TlsFiles {
  /** Path of the certificate authority that signed the server's certificate. */
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  /** The name in the server's certificate, when it differs from the host. */
  serverName?: string;
}

export interface RedisTarget {
  mode: 'single' | 'cluster' | 'sentinel';
  hosts: { host: string; port: number }[];
  /** Sentinel: the name of the master group. */
  master?: string;
  /** Sentinel: what the sentinels themselves ask for, if anything. */
  sentinelUsername?: string;
  sentinelPassword?: string;
  username?: string;
  password?: string;
  db?: number;
  tls?: TlsFiles;
}

const schemes: Record<string, { mode: RedisTarget['mode']; tls: boolean }> = {
  redis: { mode: 'single', tls: false },
  rediss: { mode: 'single', tls: true },
  'redis+cluster': { mode: 'cluster', tls: false },
  'rediss+cluster': { mode: 'cluster', tls: true },
  'redis+sentinel': { mode: 'sentinel', tls: false },
  'rediss+sentinel': { mode: 'sentinel', tls: true },
};

const targetPattern = /^([a-z+]+):\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/;

const tlsParameters = ['caFile', 'certFile', 'keyFile', 'serverName'] as const;
const sentinelParameters = ['sentinelUsername', 'sentinelPassword'] as const;

export function parseTarget(target: string | RedisTarget): RedisTarget {
  if (typeof target !== 'string') return checkTarget(target);
  const refuse = (reason: string) => redisErrors.REDIS_TARGET({ target: hidePassword(target), reason });
  const match = targetPattern.exec(target);
  if (!match) throw refuse('it is not a URL');
  const [, scheme, username, password, hostList, path, query] = match;
  const kind = schemes[scheme!];
  if (!kind) throw refuse(`the scheme "${scheme}" is not known`);
  const hosts = hostList!.split(',').map((item) => parseHost(item, refuse));
  if (kind.mode === 'single' && hosts.length > 1) throw refuse('one server has one host');
  const parameters = new URLSearchParams(query ?? '');
  for (const name of parameters.keys()) {
    const isForTls = kind.tls && tlsParameters.some((known) => known === name);
    const isForSentinel = kind.mode === 'sentinel' && sentinelParameters.some((known) => known === name);
    if (!isForTls && !isForSentinel) throw refuse(`"${name}" means nothing here`);
  }
  const parsed: RedisTarget = { mode: kind.mode, hosts };
  if (username) parsed.username = decode(username, refuse);
  if (password) parsed.password = decode(password, refuse);
  if (kind.mode === 'sentinel') {
    if (!path) throw refuse('the name of the master group is missing');
    parsed.master = path;
    for (const name of sentinelParameters) {
      const value = parameters.get(name);
      if (value) parsed[name] = value;
    }
  } else if (path) {
    const db = Number(path);
    if (!Number.isInteger(db) || db < 0) throw refuse(`"${path}" is not a database number`);
    if (kind.mode === 'cluster' && db !== 0) throw refuse('a cluster has only database 0');
    parsed.db = db;
  }
  if (kind.tls) {
    parsed.tls = {};
    for (const name of tlsParameters) {
      const value = parameters.get(name);
      if (value) parsed.tls[name] = value;
    }
  }
  return parsed;
}

/** The target in a form that may be logged. */
export function describeTarget(target: RedisTarget): string {
  const hosts = target.hosts.map((h) => `${h.host}:${h.port}`).join(',');
  return `${target.mode} ${hosts}${target.master ? `/${target.master}` : ''}`;
}

export type TlsContents = ReturnType<typeof tlsOptions>;

export function tlsOptions(files: TlsFiles) {
  return {
    ...(files.caFile && { ca: readPem(files.caFile) }),
    ...(files.certFile && { cert: readPem(files.certFile) }),
    ...(files.keyFile && { key: readPem(files.keyFile) }),
    ...(files.serverName && { servername: files.serverName }),
  };
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw redisErrors.REDIS_TARGET({ target: file, reason: 'the file cannot be read' }, { cause });
  }
}

function checkTarget(target: RedisTarget): RedisTarget {
  const refuse = (reason: string) =>
    redisErrors.REDIS_TARGET({ target: JSON.stringify(target.hosts), reason });
  if (!Array.isArray(target.hosts) || target.hosts.length === 0) throw refuse('it has no hosts');
  if (target.mode === 'sentinel' && !target.master) throw refuse('the name of the master group is missing');
  return target;
}

function decode(text: string, refuse: (reason: string) => Error): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refuse('a % in the user or password is not followed by two hexadecimal digits');
  }
}

function parseHost(item: string, refuse: (reason: string) => Error): { host: string; port: number } {
  const match = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(item);
  if (!match) throw refuse(`"${item}" is not host:port`);
  const port = Number(match[2] ?? 6379);
  if (port < 1 || port > 65535) throw refuse(`port ${port} does not exist`);
  return { host: match[1]!.replace(/^\[|\]$/g, ''), port };
}

function hidePassword(url: string): string {
  return url.replace(/\/\/([^:/]*):.*@/, '//$1:***@').replace(/(sentinelPassword=)[^&]*/, '$1***');
}
