// Whose files? A key of the whole installation acts for one tenant at a time where files are concerned, and the address says for which. Others
// have a tenant of their own and see nothing of this. There is no list of tenants, because nothing has to be made before the first file of one:
// what keys, uploads and events name is offered, and any other may be written.
import { get, may, mayChooseTenant, queryText } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { events, uploads } from '../data/live.js';
import type { KeyRow, Page } from '../data/shapes.js';
import { filter, path, query } from '../place.js';
import { Field } from './field.js';

/** The one that the server takes when none is named. */
const usual = 'default';
const everyTenant = '*';
/** So many stand there to be pressed; the others are offered while somebody writes. */
const mostPressed = 8;
/** A page of keys, the largest that there is. */
const keysRead = 1_000;

/** What the address says; empty for the usual one, and for those who cannot choose. */
export function chosenTenant(): string {
  return mayChooseTenant() ? (query.value.get('tenant') ?? '') : '';
}

/** `drop` names what belongs to the tenant before: a folder, a file. `none` says what is meant while none is chosen. */
export function TenantField(props: { drop?: string[]; none?: string }) {
  return mayChooseTenant() ? <Tenants {...props} /> : null;
}

function Tenants({ drop = [], none = usual }: { drop?: string[]; none?: string }) {
  const known = useKnownTenants().filter((name) => name !== none);
  const chosen = chosenTenant();
  const gone = Object.fromEntries(drop.map((name) => [name, '']));
  const linkTo = (tenant: string): string =>
    path.value + queryText({ ...Object.fromEntries(query.value), ...gone, tenant });
  return (
    <>
      <Field
        label="Tenant"
        value={chosen}
        placeholder={none}
        offered={known}
        settle={(tenant) => filter({ ...gone, tenant: tenant.trim() })}
      />
      {known.length > 0 && (
        <nav class="tabs" aria-label="Known tenants">
          {['', ...known.slice(0, mostPressed)].map((name) => (
            <a
              key={name}
              href={linkTo(name)}
              aria-current={name === chosen ? 'true' : undefined}
              title={name || none}
            >
              {name || none}
            </a>
          ))}
        </nav>
      )}
    </>
  );
}

function useKnownTenants(): string[] {
  // Only admins may read keys.
  const keys = useAnswer(may('admin') ? 'tenants of keys' : null, (abort) =>
    get<Page<KeyRow>>('/v1/keys', { query: { limit: keysRead }, signal: abort }),
  );
  const seen = [
    usual,
    ...(keys.data?.items ?? []).map(({ tenant }) => tenant),
    ...(uploads.value ?? []).map(({ tenant }) => tenant),
    ...events.value.map(({ data }) => tenantIn(data)),
  ];
  return [...new Set(seen)].filter((name) => name !== '' && name !== everyTenant);
}

/** Whom something is about, as far as its data say. */
export function tenantIn(data: Record<string, unknown> | null): string {
  return typeof data?.['tenant'] === 'string' ? data['tenant'] : '';
}
