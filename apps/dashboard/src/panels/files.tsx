// Files on their way in, the newest of them with how far they are, and events on their way out.
import { mayChooseTenant } from '../data/api.js';
import { uploads as live } from '../data/live.js';
import type { UploadRow } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Facts, Mark, Meter, Panel } from '../parts/panel.js';
import { to } from '../place.js';
import { bytes, number, percent, span } from '../format.js';

const lateMs = 60_000;
const shown = 4;

export function FilesPanel({ overview }: PanelProps) {
  const { uploads, outbox } = overview;
  return (
    <Panel title="Files and events" actions={<a href="/uploads">Uploads</a>}>
      <div class="stack">
        <Facts
          items={[
            ['Uploads open', number(uploads.open)],
            ['Events unpublished', number(outbox.waiting)],
            [
              'Oldest of them',
              outbox.waiting === 0 ? (
                <Mark tone="ok">none waits</Mark>
              ) : (
                <>
                  {span(outbox.oldestMs)} {outbox.oldestMs > lateMs && <Mark tone="warn">late</Mark>}
                </>
              ),
            ],
          ]}
        />
        {live.value !== null && live.value.length > 0 && (
          <ul class="arriving">
            {live.value.slice(0, shown).map((upload) => (
              <Arriving key={upload.id} upload={upload} />
            ))}
          </ul>
        )}
      </div>
    </Panel>
  );
}

function Arriving({ upload }: { upload: UploadRow }) {
  const { id, drive, path, tenant, size, receivedBytes } = upload;
  const share = size === null ? null : size === 0 ? 1 : receivedBytes / size;
  return (
    <li>
      <a title={`${drive}/${path}`} href={to('trace', { id, tenant: mayChooseTenant() ? tenant : '' })}>
        {path}
      </a>
      <span>{share === null ? bytes(receivedBytes) : percent(share)}</span>
      {share !== null && <Meter part={share} label={`Received of ${path}`} tone="accent" />}
    </li>
  );
}
