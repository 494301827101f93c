/**
 * Who may use this server: the keys of the configuration and of the database together, and the audit log of what they do. A server that
 * others can reach does not start as long as there is no key at all.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Access, AuditPruner, KeyRing } from '@sluice/access';
import type { Logger } from '@sluice/base';
import type { Records } from '@sluice/records';
import type { Config } from './config.js';
import { serverErrors } from './errors.js';

export interface AccessService {
  access: Access;
  ring: KeyRing;
  stop(): Promise<void>;
}

export async function startAccess(config: Config, records: Records, logger: Logger): Promise<AccessService> {
  const ring = new KeyRing({ keys: records.keys, logger });
  await ring.start();
  const mayBeOpen = isLoopback(config.host);
  const secret = config.secret ?? keptSecret(config.dataDir);
  const access = new Access({ keys: config.keys, ring, secret, rules: config.tenants, mayBeOpen });
  if (!access.hasKeys && !mayBeOpen) {
    await ring.stop();
    throw serverErrors.OPEN_TO_ALL({ host: config.host });
  }
  const pruner = new AuditPruner({ audit: records.audit, keepMs: config.auditKeepMs, logger });
  pruner.start();
  return {
    access,
    ring,
    stop: async () => {
      await pruner.stop();
      await ring.stop();
    },
  };
}

function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1)$/.test(host);
}

/** Sessions, tokens and links outlive a restart, so what signs them does too. */
function keptSecret(dataDir: string): string {
  const file = join(dataDir, 'secret');
  if (!existsSync(file)) {
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(file, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' });
  }
  return readFileSync(file, 'utf8');
}
