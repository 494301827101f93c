// Settings: who you are here, and for admins the keys, the webhooks and the alerts. Each list is a file of its own in `src/settings/`.
import { may, session } from '../data/api.js';
import { Empty, Notice } from '../parts/notice.js';
import { Facts, PageFrame, Panel } from '../parts/panel.js';
import { At } from '../parts/time.js';
import { Alerts } from '../settings/alerts.js';
import { Keys } from '../settings/keys.js';
import { Webhooks } from '../settings/webhooks.js';

export default function SettingsPage() {
  const own = session.value!;
  return (
    <PageFrame title="Settings">
      {own.via === 'open' && (
        <Notice tone="warn">
          There is no key yet: everybody on this machine may do everything. The first key must be an admin of
          the whole installation (<code>*</code>); from then on everybody signs in.
        </Notice>
      )}
      <Panel title="You">
        <Facts
          items={[
            ['Key', own.key?.name ?? 'none'],
            ['Tenant', own.installation ? '* (the whole installation)' : own.tenant],
            ['Role', own.role],
            ['Signed in until', own.expiresAt && <At at={own.expiresAt} />],
          ]}
        />
      </Panel>
      {may('admin') ? (
        <>
          <Keys />
          <Webhooks />
        </>
      ) : (
        <Empty title="Keys and webhooks are for admins" />
      )}
      {own.installation && <Alerts />}
    </PageFrame>
  );
}
