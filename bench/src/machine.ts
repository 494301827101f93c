/*
 * The machine and the versions a result was measured with; a figure without them says little.
 */
import { readFile } from 'node:fs/promises';
import os from 'node:os';

export interface Machine {
  cpu: string;
  cores: number;
  memoryGib: number;
  system: string;
  node: string;
  /** Versions of the servers that were measured or written to. */
  redis?: string;
  s3?: string;
  browser?: string;
  versions: Record<string, string>;
}

export async function describeMachine(servers: Pick<Machine, 'redis' | 's3' | 'browser'>): Promise<Machine> {
  const cpus = os.cpus();
  return {
    cpu: cpus[0]?.model.trim() ?? 'unknown',
    cores: cpus.length,
    memoryGib: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    ...servers,
    versions: await dependencyVersions(),
  };
}

/** The peers are pinned to exact versions, so our own package.json knows what was measured. */
async function dependencyVersions(): Promise<Record<string, string>> {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(await readFile(file, 'utf8')) as { dependencies: Record<string, string> }).dependencies;
}
