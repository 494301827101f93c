/**
 * Who may use this server: the keys of the configuration and of the database together, and the audit log of what they do. A server that
 * others can reach does not start as long as there is no key at all.
 */
import { Access, AuditPruner, KeyRing } from '@sluice/access';
import type { Logger } from '@sluice/base';
import type { Records } from '@sluice/records';
import type { Config } from './config.js';
import { serverErrors } from './errors.js';
import { secretOf } from './secret.js';

export interface AccessService {
  access: Access;
  ring: KeyRing;
  stop(): Promise<void>;
}

export async function startAccess(config: Config, records: Records, logger: Logger): Promise<AccessService> {
  const ring = new KeyRing({ keys: records.keys, logger });
  await ring.start();
  const mayBeOpen = isLoopback(config.host);
  const secret = secretOf(config);
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
