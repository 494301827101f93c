// Files on their way in, and events on their way out.
import type { PanelProps } from '../panels.js';
import { Facts, Mark, Panel } from '../parts/panel.js';
import { number, span } from '../format.js';

const lateMs = 60_000;

export function FilesPanel({ overview }: PanelProps) {
  const { uploads, outbox } = overview;
  return (
    <Panel title="Files and events" actions={<a href="/uploads">Uploads</a>}>
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
    </Panel>
  );
}
