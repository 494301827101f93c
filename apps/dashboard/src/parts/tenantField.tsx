// Whose files? A key of the whole installation acts for one tenant at a time where files are concerned, and the address says for which. Others
// have a tenant of their own and see nothing of this.
import { mayChooseTenant } from '../data/api.js';
import { events, uploads } from '../data/live.js';
import { filter, query } from '../place.js';
import { Field } from './field.js';

/** The one that the server takes when none is named. */
const usual = 'default';

/** What the address says; empty for the usual one, and for those who cannot choose. */
export function chosenTenant(): string {
  return mayChooseTenant() ? (query.value.get('tenant') ?? '') : '';
}

/** `drop` names what belongs to the tenant before: a folder, a file. */
export function TenantField({ drop = [] }: { drop?: string[] }) {
  if (!mayChooseTenant()) return null;
  const seen = [
    usual,
    ...(uploads.value ?? []).map(({ tenant }) => tenant),
    ...events.value.map(({ data }) => tenantIn(data)),
  ];
  const gone = Object.fromEntries(drop.map((name) => [name, '']));
  return (
    <Field
      label="Tenant"
      value={chosenTenant()}
      placeholder={usual}
      offered={[...new Set(seen.filter(Boolean))]}
      settle={(tenant) => filter({ ...gone, tenant: tenant.trim() })}
    />
  );
}

/** Whom something is about, as far as its data say. */
export function tenantIn(data: Record<string, unknown>): string {
  return typeof data['tenant'] === 'string' ? data['tenant'] : '';
}
