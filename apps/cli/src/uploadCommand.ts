// `sluice upload`: files, folders and pipes to the server, several at once, resumable. The client does the work; this file says what
// goes where and shows how far it is.
import { resolve } from 'node:path';
import { Option } from 'commander';
import type * as Client from '@sluice/client/node';
import type { UploadOptions, UploadResult } from '@sluice/client/node';
import { declare, dryRunOption, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { cliErrors } from './errors.js';
import { exitCodes, exitCodeOf, isAbort } from './exitCodes.js';
import { bytes, counted } from './human.js';
import { localFiles, type LocalFile } from './localFiles.js';
import { sentence } from './output.js';
import { gatherPair, parseBytes, parsePositive } from './parse.js';
import { parsePlace, written, type Place } from './place.js';
import { ProgressBar } from './progressBar.js';
import { safeLine } from './sanitise.js';

/** Loaded when something is uploaded: all other commands begin sooner without it. */
const loadClient = (): Promise<typeof Client> => import('@sluice/client/node');

interface UploadFlags {
  to?: string;
  parallel: number;
  chunks?: number;
  chunkSize?: number;
  sha256?: boolean;
  ifExists?: 'replace' | 'fail';
  type?: string;
  meta?: Record<string, string>;
  resume: boolean;
  dryRun?: boolean;
}

interface Job {
  file: LocalFile;
  place: Place;
}

const usualDrive = 'main';

export function uploadCommand(program: SluiceCommand): void {
  declare(program, 'upload', 'Upload files, folders, or what comes on stdin.')
    .argument('<path...>', 'files and folders; - is stdin')
    .example('upload film.mp4', 'to film.mp4 of the drive "main"')
    .example('upload photos --to main/2026/', 'a folder with all that is in it')
    .example('upload *.pdf --to archive/letters/ --parallel 8', 'eight at once')
    .example('tar c . | sluice upload - --to main/backup.tar', 'what comes through a pipe')
    .option('-t, --to <place>', 'drive/folder/ or drive/file', usualDrive)
    .option('-p, --parallel <files>', 'files at once', parsePositive, 4)
    .option('--chunks <count>', 'chunks of one file at once', parsePositive)
    .option('--chunk-size <bytes>', 'such as 8M; the server chooses unless stated', parseBytes)
    .option('--sha256', 'compute each digest first and let the server check it')
    .addOption(new Option('--if-exists <what>', 'when the place is taken').choices(['replace', 'fail']))
    .option('--type <type>', 'media type of the files')
    .option('--meta <name=value>', 'kept with the files; may be repeated', gatherPair)
    .option('--no-resume', 'do not continue what was begun before')
    .option(...dryRunOption)
    .completing('file')
    .runs(async (context, flags: UploadFlags, paths: string[]) => {
      if (paths.includes('-')) await uploadStdin(context, flags, paths);
      else await uploadFiles(context, flags, paths);
    });
}

async function uploadFiles(context: Context, flags: UploadFlags, paths: string[]): Promise<void> {
  const { out, environment } = context;
  const skip = (what: string): void => out.warn(`${what} was left out: it is not a plain file`);
  const files = await localFiles(paths, { from: environment.folder, skip });
  if (files.length === 0) return out.say('nothing to upload: the folder is empty');
  const jobs = files.map((file) => ({
    file,
    place: placeOf(flags.to ?? usualDrive, file, isFolder(flags, files)),
  }));
  checkTargets(jobs);
  if (flags.dryRun) return showPlan(context, jobs);
  await context.api.get('/healthz');
  await runJobs(context, flags, jobs);
}

/** Into a folder when the target says so, when there are several files, or when only a drive is named. */
function isFolder({ to = usualDrive }: UploadFlags, files: LocalFile[]): boolean {
  return to.endsWith('/') || files.length > 1 || files[0]!.name.includes('/') || !to.includes('/');
}

function placeOf(to: string, file: LocalFile, isBelow: boolean): Place {
  const { drive, path } = parsePlace(to);
  return { drive, path: isBelow ? [path, file.name].filter(Boolean).join('/') : path };
}

function checkTargets(jobs: Job[]): void {
  const seen = new Map<string, string>();
  for (const { file, place } of jobs) {
    const target = written(place);
    const other = seen.get(target);
    if (other !== undefined)
      throw cliErrors.USAGE({ reason: `${other} and ${file.source} would both become ${target}` });
    seen.set(target, file.source);
  }
}

function showPlan({ out }: Context, jobs: Job[]): void {
  const total = jobs.reduce((sum, { file }) => sum + file.size, 0);
  for (const { file, place } of jobs) {
    if (out.isJson) out.jsonLine({ source: file.source, place: written(place), size: file.size });
    else out.line(`${safeLine(file.source)} → ${safeLine(written(place))}  ${bytes(file.size)}`);
  }
  out.say(`${counted(jobs.length, 'file')}, ${bytes(total)}; nothing was sent`);
}

async function runJobs(context: Context, flags: UploadFlags, jobs: Job[]): Promise<void> {
  const { out, signal, environment } = context;
  const client = await loadClient();
  const bar = new ProgressBar(out);
  bar.expect(
    jobs.reduce((sum, { file }) => sum + file.size, 0),
    jobs.length,
  );
  const acked = new Map<Job, number>();
  let sum = 0;
  const failures: unknown[] = [];
  const waiting = [...jobs];
  const work = async (): Promise<void> => {
    for (let job = waiting.shift(); job && !signal.aborted; job = waiting.shift()) {
      const { file, place } = job;
      const move = (ackedBytes: number): void => {
        sum += ackedBytes - (acked.get(job) ?? 0);
        acked.set(job, ackedBytes);
        bar.set(sum, written(place));
      };
      try {
        const task = client.upload(resolve(environment.folder, file.source), {
          ...optionsOf(client, context, flags, place),
          onProgress: ({ ackedBytes }) => move(ackedBytes),
        });
        const result = await task.done;
        move(result.size);
        bar.aside(() => tellResult(context, place, result));
      } catch (error) {
        failures.push(error);
        if (isAbort(error)) return;
        if (jobs.length > 1) bar.aside(() => tellFailure(context, file.source, error));
        // With the server away, every other file would wait for it in vain.
        if (exitCodeOf(error) === exitCodes.serverAway) waiting.length = 0;
      }
      bar.endFile();
    }
  };
  await Promise.all(Array.from({ length: Math.min(flags.parallel, jobs.length) }, work));
  bar.end();
  if (signal.aborted) out.say('stopped; the same command continues where it was');
  signal.throwIfAborted();
  if (failures.length === 1 && jobs.length === 1) throw failures[0];
  if (failures.length > 0) throw cliErrors.SOME_FAILED({ failed: failures.length, total: jobs.length });
}

async function uploadStdin(context: Context, flags: UploadFlags, paths: string[]): Promise<void> {
  const place = parsePlace(flags.to ?? usualDrive);
  if (paths.length > 1 || place.path === '' || flags.to!.endsWith('/'))
    throw cliErrors.USAGE({ reason: 'stdin is one file; say which one it becomes: --to main/backup.tar' });
  if (flags.dryRun)
    return context.out.would({ place: written(place) }, `stdin → ${written(place)}; nothing was sent`);
  await context.api.get('/healthz');
  const client = await loadClient();
  const bar = new ProgressBar(context.out);
  bar.expect(undefined);
  const task = client.upload(context.stdin as AsyncIterable<Uint8Array>, {
    ...optionsOf(client, context, flags, place),
    // A pipe cannot be read twice.
    resume: false,
    onProgress: ({ ackedBytes }) => bar.set(ackedBytes, written(place)),
  });
  try {
    const result = await task.done;
    bar.end();
    tellResult(context, place, result);
  } finally {
    bar.end();
  }
}

function optionsOf(
  { folderStore }: typeof Client,
  { api, environment, signal }: Context,
  flags: UploadFlags,
  place: Place,
): UploadOptions {
  return {
    url: api.url,
    drive: place.drive,
    path: place.path,
    signal,
    ...(api.key !== undefined && { key: api.key }),
    ...(flags.chunks !== undefined && { parallel: flags.chunks }),
    ...(flags.chunkSize !== undefined && { chunkSize: flags.chunkSize }),
    ...(flags.sha256 && { sha256: 'auto' }),
    ...(flags.ifExists && { ifExists: flags.ifExists }),
    ...(flags.type !== undefined && { contentType: flags.type }),
    ...(flags.meta && { metadata: flags.meta }),
    resume: flags.resume ? folderStore(environment.uploadsFolder) : false,
    ...(api.tenant !== undefined && { fetch: asTenant(api.tenant) }),
  };
}

function asTenant(tenant: string): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('X-Sluice-Tenant', tenant);
    return fetch(input, { ...init, headers });
  };
}

function tellResult({ out }: Context, place: Place, result: UploadResult): void {
  if (out.isJson) out.jsonLine({ place: written(place), ...result });
  else out.line(`${safeLine(written(place))}  ${bytes(result.size)}  ${result.nodeId}`);
}

function tellFailure({ out }: Context, source: string, error: unknown): void {
  const { message } = error as Error;
  out.stderr.write(sentence(out.stderr, safeLine(`${source}: ${message}`), 'failed:', out.saying.red));
}
