// `sluice doctor`: looks at everything that is wrong often, and says of each thing whether it is well and what to do if not. Findings
// are ok, warn or fail; the exit code is 1 when one of them is fail.
import { join } from 'node:path';
import { crossedOf, readAlerts } from './alertsCommand.js';
import { declare, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { ApiError, cliErrors } from './errors.js';
import { exitCodes, exitCodeOf } from './exitCodes.js';
import { bytes, count, counted, duration, percent } from './human.js';
import { modeOf, readLogin } from './loginFile.js';
import { whoAmI } from './loginCommands.js';
import { readRedis } from './redisCommands.js';
import type { RedisHealth } from './replies.js';
import { readReady } from './statusCommand.js';
import { safeLine } from './sanitise.js';
import { padText, textWidth, wrapText } from './textWidth.js';
import { version } from './version.js';

export interface Finding {
  what: string;
  level: 'ok' | 'warn' | 'fail' | 'skip';
  text: string;
  /** What to do about it. */
  advice?: string;
}

const lowestRedis = 7;
/** It makes ids by itself. */
const lowestPostgres = 13;
const lowestNode = 20;
/** An answer that takes longer is one that people wait for. */
const slowMs = 1_000;
const skewWarnMs = 2_000;
const skewFailMs = 30_000;
/** So old a look at Redis may be. */
const lookMs = 10_000;
/** The Date header has no fractions. */
const dateHeaderMs = 1_000;
const memoryWarn = 0.8;
const memoryFail = 0.95;
const fragmentationWarn = 1.8;
/** A small server is fragmented by nature. */
const fragmentationBytes = 256 * 1_048_576;
/** Columns of a finding, however narrow the terminal. */
const leastRoom = 20;

const marks = { ok: '✓', warn: '!', fail: '✗', skip: '·' } as const;
const styles = { ok: 'green', warn: 'yellow', fail: 'red', skip: 'dim' } as const;

export function doctorCommand(program: SluiceCommand): void {
  declare(program, 'doctor', 'Look for what is wrong often, and say what to do.')
    .example('doctor', 'everything that can be seen from here')
    .example('doctor --json | jq \'select(.level != "ok")\'', 'what is not well')
    .runs(async (context) => {
      const findings = await examine(context);
      if (context.out.isJson) for (const finding of findings) context.out.jsonLine(finding);
      else print(context, findings);
      const failed = findings.filter(({ level }) => level === 'fail').length;
      if (failed > 0) throw cliErrors.UNHEALTHY({ what: `${counted(failed, 'finding')} must be dealt with` });
    });
}

async function examine(context: Context): Promise<Finding[]> {
  const here = [nodeVersion(), ...(await configuration(context)), ...(await dataFolder(context))];
  const server = await reachability(context);
  if (server.some(({ level }) => level === 'fail')) return [...here, ...server];
  const [parts, key] = [await readiness(context), await keyRole(context)];
  return [
    ...here,
    ...server,
    ...parts,
    key,
    ...(await redisFindings(context)),
    ...(await clocks(context)),
    ...(await alerts(context)),
  ];
}

function nodeVersion(): Finding {
  const major = Number(process.versions.node.split('.')[0]);
  const text = `Node.js ${process.versions.node}, sluice ${version}`;
  if (major >= lowestNode) return { what: 'versions here', level: 'ok', text };
  return { what: 'versions here', level: 'fail', text, advice: `install Node.js ${lowestNode} or newer` };
}

async function configuration({ api, source, environment }: Context): Promise<Finding[]> {
  const from = {
    option: '--url',
    environment: 'SLUICE_URL',
    login: 'sluice login',
    usual: 'nobody said where, the usual place',
  }[source];
  const findings: Finding[] = [{ what: 'server', level: 'ok', text: `${api.url} (${from})` }];
  const { protocol, hostname } = new URL(api.url);
  const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol === 'http:' && !isHere && api.key !== undefined)
    findings.push({
      what: 'connection',
      level: 'warn',
      text: 'the key travels over http, where others can read it',
      advice: 'put TLS in front of the server and use an https address',
    });
  const { loginFile } = environment;
  const mode = await modeOf(loginFile);
  if (mode !== undefined) findings.push(privacyOf('login file', loginFile, mode));
  if (mode !== undefined && !(await readLogin(loginFile)))
    findings.push({
      what: 'login',
      level: 'fail',
      text: `${loginFile} is not what login writes; nobody is signed in`,
      advice: 'sluice login',
    });
  return [...findings, ...variables(environment.all)];
}

/** A name that nobody reads is a setting that somebody believes in. */
function variables(env: NodeJS.ProcessEnv): Finding[] {
  const what = 'configuration';
  const ours = Object.keys(env).filter((name) => name.startsWith('SLUICE_') && env[name] !== undefined);
  const strangers = ours.filter((name) => !knownVariables.has(name));
  if (strangers.length > 0)
    return [
      {
        what,
        level: 'warn',
        text: `nobody reads ${strangers.join(', ')}`,
        advice: 'check the spelling; apps/server/README.md lists the names',
      },
    ];
  const text = ours.length === 0 ? 'no variables; the usual settings' : `${ours.sort().join(', ')}: known`;
  return [{ what, level: 'ok', text }];
}

/** Only where a server keeps its data on this machine. */
async function dataFolder({ environment: { dataDir } }: Context): Promise<Finding[]> {
  const mode = await modeOf(dataDir);
  if (mode === undefined) return [];
  const isOpen = (mode & 0o022) !== 0;
  const folder: Finding = isOpen
    ? {
        what: 'data folder',
        level: 'fail',
        text: `others may write to ${dataDir} (${octal(mode)})`,
        advice: `chmod go-w ${dataDir}`,
      }
    : { what: 'data folder', level: 'ok', text: `${dataDir} (${octal(mode)})` };
  const file = join(dataDir, 'secret');
  const secretMode = await modeOf(file);
  return secretMode === undefined ? [folder] : [folder, privacyOf('secret file', file, secretMode)];
}

function privacyOf(what: string, file: string, mode: number): Finding {
  if ((mode & 0o077) === 0) return { what, level: 'ok', text: `${file} (${octal(mode)})` };
  return {
    what,
    level: 'fail',
    text: `others can read ${file} (${octal(mode)})`,
    advice: `chmod 600 ${file}, and replace what it held`,
  };
}

async function reachability({ api }: Context): Promise<Finding[]> {
  try {
    const began = performance.now();
    await api.get('/healthz');
    const tookMs = performance.now() - began;
    const reach: Finding = {
      what: 'reachable',
      level: tookMs > slowMs ? 'warn' : 'ok',
      text: `answers in ${duration(tookMs)}`,
    };
    if (tookMs > slowMs) reach.advice = 'look at the load of the server and the line to it';
    return [reach, await serverVersion(api)];
  } catch (error) {
    const advice = 'start it (sluice up), or say where it is: --url, SLUICE_URL or sluice login';
    const { reason } = (error as Partial<ApiError>).details ?? {};
    const text = typeof reason === 'string' ? reason : (error as Error).message;
    return [{ what: 'reachable', level: 'fail', text, advice }];
  }
}

async function serverVersion(api: Context['api']): Promise<Finding> {
  const what = 'server version';
  try {
    const { info } = await api.get<{ info: { version: string } }>('/openapi.json');
    if (info.version === version) return { what, level: 'ok', text: info.version };
    return {
      what,
      level: 'warn',
      text: `${info.version}, this command is ${version}`,
      advice: 'use the same version on both sides',
    };
  } catch (error) {
    return {
      what,
      level: 'warn',
      text: (error as Error).message,
      advice: 'is this a process without the role "api"?',
    };
  }
}

async function readiness(context: Context): Promise<Finding[]> {
  const { status: _, ...parts } = await readReady(context);
  return Object.entries(parts).map(([name, word]) =>
    word === 'ok'
      ? { what: `part ${name}`, level: 'ok', text: 'works' }
      : {
          what: `part ${name}`,
          level: 'fail',
          text: word,
          advice: 'the log of the server says more; see docs/guides/operating.md',
        },
  );
}

async function keyRole({ api }: Context): Promise<Finding> {
  const what = 'key';
  try {
    const session = await whoAmI(api);
    if (!session) return { what, level: 'ok', text: 'accepted' };
    const whose = session.installation ? 'the whole installation' : `the tenant ${session.tenant}`;
    if (session.via === 'open')
      return {
        what,
        level: 'warn',
        text: 'none is needed: everybody on this machine is admin',
        advice: "sluice keys create ops --for '*' --role admin",
      };
    return {
      what,
      level: 'ok',
      text: `${session.role} of ${whose}${session.key ? ` (${session.key.name})` : ''}`,
    };
  } catch (error) {
    if (exitCodeOf(error) !== exitCodes.notAllowed) throw error;
    return { what, level: 'fail', text: (error as Error).message, advice: 'sluice login, or SLUICE_KEY' };
  }
}

async function redisFindings({ api }: Context): Promise<Finding[]> {
  try {
    return judgeRedis(await readRedis(api));
  } catch (error) {
    return [unseen('Redis', error)];
  }
}

export function judgeRedis(redis: RedisHealth): Finding[] {
  const share = redis.maxBytes > 0 ? redis.usedBytes / redis.maxBytes : undefined;
  const { aof } = redis;
  const findings: Finding[] = [
    versionAtLeast(redis.version, lowestRedis)
      ? { what: 'Redis version', level: 'ok', text: redis.version }
      : {
          what: 'Redis version',
          level: 'fail',
          text: redis.version,
          advice: `upgrade to Redis ${lowestRedis} or Valkey, on every master of a cluster`,
        },
    redis.policy === 'noeviction'
      ? { what: 'eviction', level: 'ok', text: 'noeviction' }
      : {
          what: 'eviction',
          level: 'fail',
          text: `${redis.policy}: Redis throws queues away when it is full`,
          advice: 'CONFIG SET maxmemory-policy noeviction, and in redis.conf',
        },
    redis.evicted === 0
      ? { what: 'evicted keys', level: 'ok', text: 'none' }
      : {
          what: 'evicted keys',
          level: 'fail',
          text: count(redis.evicted),
          advice: 'jobs may be lost; set noeviction and look for what is missing',
        },
  ];
  if (share === undefined)
    findings.push({
      what: 'memory',
      level: 'warn',
      text: `${bytes(redis.usedBytes)} used, no limit`,
      advice: 'set maxmemory below what the machine has',
    });
  else
    findings.push({
      what: 'memory',
      level: share >= memoryFail ? 'fail' : share >= memoryWarn ? 'warn' : 'ok',
      text: `${bytes(redis.usedBytes)} of ${bytes(redis.maxBytes)} (${percent(share)})`,
      ...(share >= memoryWarn && { advice: 'give Redis more memory, or let workers catch up' }),
    });
  if (redis.fragmentation >= fragmentationWarn && redis.usedBytes >= fragmentationBytes)
    findings.push({
      what: 'fragmentation',
      level: 'warn',
      text: redis.fragmentation.toFixed(2),
      advice: 'CONFIG SET activedefrag yes, or restart Redis in a quiet hour',
    });
  if (!aof.enabled)
    findings.push({
      what: 'persistence',
      level: 'warn',
      text: 'no append-only file: with Redis, everything since the last snapshot is lost',
      advice: 'CONFIG SET appendonly yes, and in redis.conf',
    });
  else if (!aof.lastWriteOk)
    findings.push({
      what: 'persistence',
      level: 'fail',
      text: 'the last write of the append-only file failed',
      advice: 'is the disk full?',
    });
  else
    findings.push({
      what: 'persistence',
      level: aof.delayedFsyncs > 0 ? 'warn' : 'ok',
      text: `append-only file, ${bytes(aof.bytes)}${aof.delayedFsyncs > 0 ? `; the disk was too slow ${count(aof.delayedFsyncs)} times` : ''}`,
      ...(aof.delayedFsyncs > 0 && { advice: 'a faster disk, or one of its own' }),
    });
  return findings;
}

/** What each clock says beside ours, which is read in the middle of the question. */
async function clocks({ api }: Context): Promise<Finding[]> {
  const findings: Finding[] = [];
  const beganMs = Date.now();
  const reply = await api.open('GET', '/healthz');
  const middleMs = (beganMs + Date.now()) / 2;
  await reply.text();
  const dateMs = Date.parse(reply.header('date') ?? '');
  const server = Number.isNaN(dateMs) ? undefined : dateMs + dateHeaderMs / 2 - middleMs;
  if (server !== undefined) findings.push(judgeSkew('clock of the server', server, dateHeaderMs));
  return [...findings, ...(await redisClock(api)), ...(await postgres(api))];
}

interface Clocks {
  serverMs: number;
  sqlMs: number;
  sqlVersion: string;
  tookMs: number;
}

/** Its clock beside that of the server, which reads both, and its version. */
async function postgres(api: Context['api']): Promise<Finding[]> {
  const what = 'clock of PostgreSQL';
  try {
    const { serverMs, sqlMs, sqlVersion, tookMs } = await api.get<Clocks>('/v1/clocks');
    return [judgeSkew(what, sqlMs - serverMs, tookMs, 'that of the server'), judgePostgres(sqlVersion)];
  } catch (error) {
    return [unseen(what, error)];
  }
}

export function judgePostgres(text: string): Finding {
  const what = 'PostgreSQL version';
  if (versionAtLeast(text, lowestPostgres)) return { what, level: 'ok', text };
  return { what, level: 'fail', text, advice: `upgrade to PostgreSQL ${lowestPostgres} or newer` };
}

/** Beside that of the server, which answers with a look that may be some seconds old. */
async function redisClock(api: Context['api']): Promise<Finding[]> {
  try {
    const reply = await api.open('GET', '/v1/redis');
    const { redis } = (await reply.json()) as { redis: RedisHealth | null };
    const dateMs = Date.parse(reply.header('date') ?? '');
    if (!redis || Number.isNaN(dateMs)) return [];
    const skewMs = redis.nowMs - dateMs;
    return [judgeSkew('clock of Redis', skewMs, dateHeaderMs + lookMs, 'that of the server')];
  } catch (error) {
    return [unseen('clock of Redis', error)];
  }
}

export function judgeSkew(what: string, skewMs: number, precisionMs = 0, other = 'the one here'): Finding {
  const off = Math.max(0, Math.abs(skewMs) - precisionMs);
  const text =
    off < skewWarnMs
      ? `agrees with ${other}`
      : `${duration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} ${other}`;
  const level = off >= skewFailMs ? 'fail' : off >= skewWarnMs ? 'warn' : 'ok';
  return { what, level, text, ...(level !== 'ok' && { advice: 'let NTP set both clocks' }) };
}

async function alerts({ api }: Context): Promise<Finding[]> {
  try {
    const all = await readAlerts(api);
    const crossed = crossedOf(all);
    if (crossed.length === 0) return [{ what: 'alerts', level: 'ok', text: `none of ${count(all.length)}` }];
    return crossed.map((text) => ({
      what: 'alert',
      level: 'warn',
      text,
      advice: 'sluice alerts, sluice status',
    }));
  } catch (error) {
    return [unseen('alerts', error)];
  }
}

/** What this key may not see, or this server does not know, is no fault. */
function unseen(what: string, error: unknown): Finding {
  if (error instanceof ApiError && error.status === 401)
    return { what, level: 'skip', text: 'only shown to a valid key' };
  if (error instanceof ApiError && error.status === 403)
    return { what, level: 'skip', text: 'only keys of the whole installation may look' };
  if (error instanceof ApiError && (error.status === 404 || error.status === 405))
    return { what, level: 'skip', text: 'this server cannot tell' };
  return { what, level: 'fail', text: (error as Error).message, advice: 'the log of the server says more' };
}

function print({ out }: Context, findings: Finding[]): void {
  const { colour } = out;
  const widest = Math.max(...findings.map(({ what }) => textWidth(what)));
  const line = (mark: string, what: string, text: string): void =>
    out.line(`${mark}  ${padText(what, widest)}  ${text}`);
  out.line(colour.dim(`   ${padText('WHAT', widest)}  FOUND`));
  // A finding is never cut: what is behind the edge may be the reason.
  const room = Math.max(leastRoom, (out.width ?? Infinity) - widest - 5);
  for (const { what, level, text } of findings)
    for (const [i, part] of wrapText(safeLine(text), room).entries())
      line(i === 0 ? colour[styles[level]](marks[level]) : ' ', i === 0 ? safeLine(what) : '', part);
  const advised = findings.filter(({ advice }) => advice !== undefined);
  if (advised.length === 0) return;
  out.heading('What to do');
  for (const { what, advice } of advised) out.advice(`${what}: ${advice}`);
}

function versionAtLeast(text: string, major: number): boolean {
  return Number(text.split('.')[0]) >= major;
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, '0');
}

/** Of this command and of the server; a test holds them against the files that read them. */
export const knownVariables = new Set(
  [
    'URL KEY TENANT',
    'ALERTS ALERT_EVERY_MS ALERT_FOR_MS AUDIT_KEEP_MS FAILURE_RATE KEY_RATE WEBHOOK_ALLOW WEBHOOK_TIMEOUT_MS WEBHOOK_WORKERS',
    'CACHE_BYTES CACHE_REDIS_URL CHUNKS_REDIS_URL DATABASE_URL DATA_DIR DELETE_GRACE_MS HANDLERS HOST KEYS LEASE_MS LOG_LEVEL ORIGINS',
    'PORT PUBLIC_URL QUEUES REDIS_URL ROLES SECRET SERVICE_KEYS STOP_DEADLINE_MS TENANTS TRUST_PROXY',
    'S3_ACCESS_KEY_ID S3_BUCKET S3_ENDPOINT S3_EQUAL_PARTS S3_IDLE_MS S3_MAX_PARTS S3_PATH_STYLE S3_REGION S3_SECRET_ACCESS_KEY',
    'UPLOAD_BUDGET_BYTES UPLOAD_HOOKS UPLOAD_IDLE_MS UPLOAD_LATE_MS UPLOAD_RECORD_MS UPLOAD_SPILL_MS UPLOAD_WORKERS',
  ]
    .flatMap((line) => line.split(' '))
    .map((name) => `SLUICE_${name}`),
);
