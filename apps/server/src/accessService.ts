/**
 * Who may use this server: the keys of the configuration and of the database together, and the audit log of what they do. A server that
 * others can reach does not start as long as there is no key at all.
 */
import { Access, AuditPruner, KeyRing } from '@sluice/access';
import type { Logger } from '@sluice/base';
import type { Records } from '@sluice/records';
import type { Config } from './config.js';
import { checkReach, isLoopback } from './door.js';
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
  try {
    checkReach(config, access.hasKeys);
  } catch (error) {
    await ring.stop();
    throw error;
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
