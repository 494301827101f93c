// Objects in a folder of a local disk, for one machine or for tests: the same contract as S3 without a server.
//
//     objects/3f/a1/07c2…   one file per object, named by the SHA-256 of its key: no key can reach another place; what lies in one
//                           folder of keys lies in one folder here, which is named by the SHA-256 of that
//     uploads/<id>/         a multipart upload: `upload` says of what, 00001, 00002, … are its parts
//     temporary/            what is being written, named for the process that writes it
//
// Everything is written to `temporary` and renamed into place when it is complete and (unless `fsync` is off) on the disk, so a
// reader sees the old object or the new one, after a crash too. What a dead process left in `temporary` is removed when a store
// is opened. Several processes may share a folder.
//
// Keys are found by hash, so that `head` and `get` cost one open, and so is a folder, so that a shallow `list` looks at few files; the
// price is that any other `list` reads the end of every file. That is meant for thousands of objects, not for millions.
import { isSluiceError } from '@sluice/base';
import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { lengthOf } from './body.js';
import type {
  Body,
  Capabilities,
  CompleteOptions,
  GetOptions,
  ListOptions,
  ListPage,
  Multipart,
  ObjectInfo,
  ObjectRead,
  ObjectStore,
  PutOptions,
  StoredPart,
} from './contract.js';
import { combineCrc64, crc64ToHex, RunningCrc64 } from './crc64.js';
import { append, describe, type Description, FileBody, seal, writeBody } from './diskFile.js';
import { storeErrors } from './errors.js';
import {
  checkDescription,
  checkKey,
  checkLength,
  checkPartList,
  checkPartNumber,
  checkRange,
} from './limits.js';

export interface DiskStoreOptions {
  folder: string;
  /** Waits until what was written is on the disk before saying so; off, a power failure may take the last seconds. */
  fsync?: boolean;
}

const GiB = 1024 ** 3;
const MAX_PARTS = 10_000;
const PART_NAME_DIGITS = 5;
const DEFAULT_LIST_LIMIT = 1_000;
/** Files whose ends are read at once while listing. */
const LIST_CONCURRENCY = 16;
/** What another machine, or a process whose number is in use again, has not touched for so long is left over. */
const LEFTOVER_MS = 24 * 60 * 60 * 1_000;

export class DiskStore implements ObjectStore {
  readonly capabilities: Capabilities = {
    minPartBytes: 1,
    maxPartBytes: 5 * GiB,
    maxParts: MAX_PARTS,
    equalParts: false,
    maxSinglePutBytes: Number.MAX_SAFE_INTEGER,
    crc64: true,
  };
  readonly #folder: string;
  readonly #fsync: boolean;
  #opened: Promise<void> | undefined;
  #closed = false;

  constructor({ folder, fsync = true }: DiskStoreOptions) {
    if (!folder) throw storeErrors.INPUT_INVALID({ what: 'folder', reason: 'name a folder for the objects' });
    this.#folder = folder;
    this.#fsync = fsync;
  }

  async put(key: string, body: Body, options: PutOptions = {}): Promise<ObjectInfo> {
    checkKey(key);
    checkDescription(options);
    checkLength(lengthOf(body), this.capabilities.maxSinglePutBytes);
    const description = await this.#publish('put', key, this.#fileOf(key), async (file) => {
      const crc64 = await writeBody(file, key, body, options);
      return { key, size: lengthOf(body), crc64, ...described(options) };
    });
    return toInfo(description, new Date());
  }

  async get(key: string, options: GetOptions = {}): Promise<ObjectRead> {
    checkKey(key);
    checkRange(options);
    options.signal?.throwIfAborted();
    const opened = await this.#open('get', key);
    if (opened === undefined) throw storeErrors.OBJECT_NOT_FOUND({ key });
    const { file, info } = opened;
    try {
      if (options.ifMatch !== undefined && options.ifMatch !== info.etag) {
        throw storeErrors.OBJECT_CHANGED({ key, expected: options.ifMatch });
      }
      const { first, last = Infinity } = options.range ?? { first: 0 };
      if (options.range !== undefined && first >= info.size) {
        throw storeErrors.RANGE_NOT_SATISFIABLE({ key, ...options.range });
      }
      const length = Math.min(info.size, last + 1) - first;
      const stream = new FileBody(file, key, first, length);
      if (options.signal !== undefined) addAbortSignal(options.signal, stream);
      return { ...info, stream, length };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkKey(key);
    const opened = await this.#open('head', key);
    await opened?.file.close();
    return opened?.info;
  }

  async delete(key: string): Promise<void> {
    checkKey(key);
    await this.#do('delete', key, async () => {
      const file = this.#fileOf(key);
      await unlink(file).catch(ignoring('ENOENT'));
      await this.#syncFolder(dirname(file)).catch(ignoring('ENOENT'));
    });
  }

  async list(
    prefix: string,
    { from, limit = DEFAULT_LIST_LIMIT, shallow = false }: ListOptions = {},
  ): Promise<ListPage> {
    return this.#do('list', prefix, async () => {
      const after = from === undefined ? undefined : Buffer.from(from);
      const found = (await this.#objectsIn(shallow ? this.#folderOf(prefix) : this.#objects))
        .filter(({ key }) => key.startsWith(prefix) && !(shallow && key.includes('/', prefix.length)))
        .map((info) => ({ info, bytes: Buffer.from(info.key) }))
        .filter(({ bytes }) => after === undefined || bytes.compare(after) > 0)
        .sort((a, b) => a.bytes.compare(b.bytes));
      const objects = found.slice(0, limit).map(({ info }) => info);
      const next = objects.at(-1)?.key;
      return { objects, ...(found.length > objects.length && next !== undefined && { next }) };
    });
  }

  async copy(from: string, to: string): Promise<ObjectInfo> {
    const { stream, length, crc64, contentType, metadata } = await this.get(from);
    try {
      return await this.put(
        to,
        { stream, length },
        { ...described({ contentType, metadata }), ...(crc64 !== undefined && { crc64 }) },
      );
    } finally {
      stream.destroy();
    }
  }

  async createMultipart(
    key: string,
    options: Pick<PutOptions, 'contentType' | 'metadata'> = {},
  ): Promise<Multipart> {
    checkKey(key);
    checkDescription(options);
    const id = randomUUID();
    // The folder appears with its description in it, or not at all.
    await this.#do('createMultipart', key, async () => {
      const made = this.#temporary();
      try {
        await mkdir(made);
        const file = await open(join(made, 'upload'), 'wx');
        try {
          await seal(file, { key, size: 0, crc64: 0n, ...described(options) });
          if (this.#fsync) await file.sync();
        } finally {
          await file.close();
        }
        await this.#syncFolder(made);
        await rename(made, this.#uploadFolder(id));
        await this.#syncFolder(join(this.#folder, 'uploads'));
      } catch (error) {
        await rm(made, { recursive: true, force: true });
        throw error;
      }
    });
    return { key, id };
  }

  async putPart(
    multipart: Multipart,
    number: number,
    body: Body,
    options: Pick<PutOptions, 'crc64' | 'signal'> = {},
  ): Promise<StoredPart> {
    const { key } = multipart;
    checkPartNumber(number, MAX_PARTS);
    checkLength(lengthOf(body), this.capabilities.maxPartBytes);
    await this.#uploadOf(multipart);
    const name = join(this.#uploadFolder(multipart.id), partName(number));
    try {
      const part = await this.#publish('putPart', key, name, async (file) => {
        const crc64 = await writeBody(file, key, body, options);
        return { key, number, size: lengthOf(body), crc64 };
      });
      return toPart(part);
    } catch (error) {
      throw isGone(error) ? notFound(multipart) : error;
    }
  }

  async listParts(multipart: Multipart): Promise<StoredPart[]> {
    await this.#uploadOf(multipart);
    return this.#do('listParts', multipart.key, async () => {
      const folder = this.#uploadFolder(multipart.id);
      const names = (await readdir(folder)).filter((name) => /^\d+$/.test(name)).sort();
      const parts: StoredPart[] = [];
      await inBatches(names, async (name) => {
        const part = await describeFile(join(folder, name));
        if (part !== undefined) parts.push(toPart(part.description));
      });
      return parts.sort((a, b) => a.number - b.number);
    });
  }

  async completeMultipart(
    multipart: Multipart,
    parts: Pick<StoredPart, 'number' | 'etag' | 'crc64'>[],
    options: CompleteOptions,
  ): Promise<ObjectInfo> {
    const { key, id } = multipart;
    checkPartList(key, parts, MAX_PARTS);
    const upload = await this.#uploadOf(multipart);
    const chosen = chooseParts(key, await this.listParts(multipart), parts);
    const { size, crc64 } = sumUp(chosen);
    const refuse = (reason: string): never => {
      throw storeErrors.PARTS_REFUSED({ operation: 'completing', key, reason });
    };
    if (size !== options.size) refuse(`they have ${size} bytes together, not ${options.size}`);
    if (options.crc64 !== undefined && crc64 !== options.crc64)
      refuse('their checksums do not make that of the object');
    try {
      const made = await this.#publish('completeMultipart', key, this.#fileOf(key), async (file) => {
        const total = new RunningCrc64();
        for (const { number } of chosen) {
          options.signal?.throwIfAborted();
          await append(file, join(this.#uploadFolder(id), partName(number)), total);
        }
        if (total.value !== crc64) refuse('a part was replaced meanwhile');
        return { key, size, crc64, ...described(upload) };
      });
      await this.abortMultipart(multipart);
      return toInfo(made, new Date());
    } catch (error) {
      throw isGone(error) ? notFound(multipart) : error;
    }
  }

  /** Moves the upload away first, so that nobody finds half of it. */
  async abortMultipart(multipart: Multipart): Promise<void> {
    try {
      await this.#uploadOf(multipart);
    } catch (error) {
      if (isSluiceError(error, 'MULTIPART_NOT_FOUND')) return;
      throw error;
    }
    await this.#do('abortMultipart', multipart.key, async () => {
      const away = this.#temporary();
      await rename(this.#uploadFolder(multipart.id), away).catch(ignoring('ENOENT'));
      await this.#syncFolder(join(this.#folder, 'uploads'));
      await rm(away, { recursive: true, force: true });
    });
  }

  async listMultiparts(prefix: string): Promise<(Multipart & { initiatedAt?: Date })[]> {
    return this.#do('listMultiparts', prefix, async () => {
      const found: (Multipart & { initiatedAt: Date })[] = [];
      await inBatches(await readdir(join(this.#folder, 'uploads')), async (id) => {
        const upload = await describeFile(join(this.#folder, 'uploads', id, 'upload'));
        if (upload === undefined || !upload.description.key.startsWith(prefix)) return;
        found.push({ key: upload.description.key, id, initiatedAt: upload.modified });
      });
      return found.sort((a, b) => Buffer.from(a.key).compare(Buffer.from(b.key)) || (a.id < b.id ? -1 : 1));
    });
  }

  async check(): Promise<void> {
    await this.#do('check', '', async () => {
      const name = this.#temporary();
      const file = await open(name, 'wx');
      try {
        await seal(file, { key: 'check', size: 0, crc64: 0n });
        if (this.#fsync) await file.sync();
      } finally {
        await file.close();
        await unlink(name);
      }
    });
  }

  close(): void {
    this.#closed = true;
  }

  get #objects(): string {
    return join(this.#folder, 'objects');
  }

  #fileOf(key: string): string {
    return join(this.#folderOf(key.slice(0, key.lastIndexOf('/') + 1)), hashOf(key));
  }

  /** Where the objects lie whose keys begin with this and have no other slash. */
  #folderOf(keys: string): string {
    const hash = hashOf(keys);
    return join(this.#objects, hash.slice(0, 2), hash.slice(2, 4));
  }

  #uploadFolder(id: string): string {
    return join(this.#folder, 'uploads', id);
  }

  #temporary(): string {
    return join(this.#folder, 'temporary', `${machineName()}.${process.pid}.${randomUUID()}`);
  }

  /** Writes a file beside the others and renames it into place. If anything fails, nothing is left of it. */
  async #publish(
    operation: string,
    key: string,
    target: string,
    write: (file: FileHandle) => Promise<Description>,
  ): Promise<Description> {
    return this.#do(operation, key, async () => {
      const name = this.#temporary();
      try {
        const description = await this.#writeFile(name, write);
        await this.#move(name, target);
        return description;
      } catch (error) {
        await rm(name, { force: true });
        throw error;
      }
    });
  }

  async #writeFile(name: string, write: (file: FileHandle) => Promise<Description>): Promise<Description> {
    const file = await open(name, 'wx');
    try {
      const description = await write(file);
      await seal(file, description);
      if (this.#fsync) await file.sync();
      return description;
    } finally {
      await file.close();
    }
  }

  /** Objects make their folders as they need them; the folder of an upload is there, or the upload is not. */
  async #move(name: string, target: string): Promise<void> {
    const folder = dirname(target);
    const fans = folder.startsWith(this.#objects);
    try {
      await rename(name, target);
    } catch (error) {
      if (!fans || !isGone(error)) throw error;
      await mkdir(folder, { recursive: true });
      await rename(name, target);
      await this.#syncFolder(dirname(folder));
      await this.#syncFolder(dirname(dirname(folder)));
    }
    await this.#syncFolder(folder);
  }

  async #uploadOf(multipart: Multipart): Promise<Description> {
    const { key, id } = multipart;
    checkKey(key);
    // The id comes from outside as well, and becomes the name of a folder.
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw notFound(multipart);
    return this.#do('looking up the upload', key, async () => {
      const upload = await describeFile(join(this.#uploadFolder(id), 'upload'));
      if (upload?.description.key !== key) throw notFound(multipart);
      return upload.description;
    });
  }

  async #open(operation: string, key: string): Promise<{ file: FileHandle; info: ObjectInfo } | undefined> {
    return this.#do(operation, key, async () => {
      const file = await openIfThere(this.#fileOf(key));
      if (file === undefined) return undefined;
      try {
        const { description, modified } = await describe(file, key);
        return { file, info: toInfo(description, modified) };
      } catch (error) {
        await file.close();
        throw error;
      }
    });
  }

  async #objectsIn(folder: string): Promise<ObjectInfo[]> {
    const found: ObjectInfo[] = [];
    await inBatches(await filesBelow(folder), async (name) => {
      const object = await describeFile(name);
      if (object !== undefined) found.push(toInfo(object.description, object.modified));
    });
    return found;
  }

  /** Every access to the disk: opens the store before the first one, and translates what the system says. */
  async #do<T>(operation: string, key: string, work: () => Promise<T>): Promise<T> {
    if (this.#closed) throw storeErrors.STORE_CLOSED({ operation });
    try {
      this.#opened ??= this.#prepareFolder();
      await this.#opened;
      return await work();
    } catch (error) {
      throw fromSystem(error, operation, key);
    }
  }

  async #prepareFolder(): Promise<void> {
    try {
      for (const name of ['objects', 'uploads', 'temporary'])
        await mkdir(join(this.#folder, name), { recursive: true });
      await this.#removeLeftovers();
      await this.#moveIntoFolders();
    } catch (error) {
      // The next call tries again.
      this.#opened = undefined;
      throw error;
    }
  }

  async #removeLeftovers(): Promise<void> {
    const folder = join(this.#folder, 'temporary');
    await inBatches(await readdir(folder), async (name) => {
      if (await isLeftover(join(folder, name), name))
        await rm(join(folder, name), { recursive: true, force: true });
    });
  }

  /** Objects used to lie by the hash of their key alone. A note says that none does any more. */
  async #moveIntoFolders(): Promise<void> {
    const note = join(this.#folder, 'objects-lie-by-folder');
    if (await stat(note).catch(() => undefined)) return;
    await inBatches(await filesBelow(this.#objects), async (name) => {
      const key = (await describeFile(name))?.description.key;
      // Another process may be doing the same.
      if (key !== undefined && name !== this.#fileOf(key))
        await this.#move(name, this.#fileOf(key)).catch(ignoring('ENOENT'));
    });
    await writeFile(note, '');
  }

  async #syncFolder(folder: string): Promise<void> {
    if (!this.#fsync) return;
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** None where there is no such folder. */
async function filesBelow(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** The parts that the caller named, as they are stored; each must be there with the ETag it had. */
function chooseParts(
  key: string,
  stored: StoredPart[],
  named: Pick<StoredPart, 'number' | 'etag' | 'crc64'>[],
): StoredPart[] {
  const byNumber = new Map(stored.map((part) => [part.number, part]));
  return named.map(({ number, etag, crc64 }) => {
    const part = byNumber.get(number);
    const fits = part !== undefined && part.etag === etag && (crc64 === undefined || crc64 === part.crc64);
    if (fits) return part;
    const reason =
      part === undefined ? `part ${number} is missing` : `part ${number} has another ETag or checksum`;
    throw storeErrors.PARTS_REFUSED({ operation: 'completing', key, reason });
  });
}

function sumUp(parts: StoredPart[]): { size: number; crc64: bigint } {
  let size = 0;
  let crc64 = 0n;
  for (const part of parts) {
    crc64 = combineCrc64(crc64, part.crc64!, part.size);
    size += part.size;
  }
  return { size, crc64 };
}

/** Content decides it, as it does in S3: the same bytes have the same ETag. */
function etagOf({ crc64, size }: { crc64: bigint; size: number }): string {
  return `"${crc64ToHex(crc64)}-${size.toString(16)}"`;
}

function toInfo(description: Description, lastModified: Date): ObjectInfo {
  const { key, size, crc64, metadata = {} } = description;
  const { contentType = 'application/octet-stream' } = description;
  return { key, size, etag: etagOf(description), crc64, contentType, lastModified, metadata };
}

function toPart(description: Description): StoredPart {
  const { number, size, crc64 } = description;
  return { number: number!, size, etag: etagOf(description), crc64 };
}

function described({
  contentType,
  metadata,
}: {
  contentType?: string | undefined;
  metadata?: Record<string, string> | undefined;
}): Pick<PutOptions, 'contentType' | 'metadata'> {
  return { ...(contentType !== undefined && { contentType }), ...(metadata !== undefined && { metadata }) };
}

function partName(number: number): string {
  return String(number).padStart(PART_NAME_DIGITS, '0');
}

function notFound({ key, id }: Multipart): Error {
  return storeErrors.MULTIPART_NOT_FOUND({ key, id });
}

/** Nothing for a file that is not there or is no stored object: what is listed can be read. */
async function describeFile(name: string): Promise<{ description: Description; modified: Date } | undefined> {
  const file = await openIfThere(name);
  if (file === undefined) return undefined;
  try {
    return await describe(file, name);
  } catch (error) {
    if (isSluiceError(error, 'STORE_CORRUPT')) return undefined;
    throw error;
  } finally {
    await file.close();
  }
}

async function openIfThere(name: string): Promise<FileHandle | undefined> {
  try {
    return await open(name, 'r');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * Named `<machine>.<pid>.<uuid>`. Of this machine: its process is gone, or has our number and is older than we are (in a container
 * every process is number 1). Of others: nobody has touched it for a day.
 */
async function isLeftover(path: string, name: string): Promise<boolean> {
  const [machine, pid] = name.split('.');
  const touched = await stat(path).catch(() => undefined);
  if (touched === undefined || !/^[\w-]+\.\d+\.[0-9a-f-]{36}$/.test(name)) return false;
  const processStartMs = Date.now() - process.uptime() * 1_000;
  if (machine === machineName()) {
    if (Number(pid) === process.pid) return touched.mtimeMs < processStartMs;
    if (!isAlive(Number(pid))) return true;
  }
  return touched.mtimeMs < Date.now() - LEFTOVER_MS;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function machineName(): string {
  return hostname().replaceAll(/[^\w-]/g, '-');
}

async function inBatches<T>(items: T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) await work(items[next++]!);
  };
  await Promise.all(Array.from({ length: Math.min(LIST_CONCURRENCY, items.length) }, lane));
}

const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
const OVERLOADED = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'EBUSY']);

function fromSystem(error: unknown, operation: string, key: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (isSluiceError(error) || typeof code !== 'string' || syscall === undefined) return error;
  const failure = { operation, key, reason: `${code} in ${syscall}` };
  if (NO_ROOM.has(code)) return storeErrors.STORE_FULL(failure, { cause: error });
  if (OVERLOADED.has(code)) return storeErrors.STORE_BUSY(failure, { cause: error });
  if (code === 'EIO')
    return storeErrors.STORE_UNAVAILABLE({ ...failure, outcomeUnknown: true }, { cause: error });
  return storeErrors.STORE_REFUSED(failure, { cause: error });
}

/** Also of an error that was translated already. */
function isGone(error: unknown): boolean {
  const { code, cause } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || (cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
}

function ignoring(code: string): (error: unknown) => void {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code !== code) throw error;
  };
}
