// On a server where nothing has happened yet: three commands, each of which fills a part of this page. It goes with the first queue.
import { sendFile } from '../commands.js';
import type { PanelProps } from '../panels.js';
import { Command } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';

export function StartPanel({ overview }: PanelProps) {
  if (overview.queues.length > 0 || overview.problems.length > 0) return null;
  return (
    <Panel title="Start here" note="nothing has happened on this server yet">
      <ol class="steps">
        <li>
          <h3>See it alive</h3>
          <p>Queues that succeed, retry and die, uploads in flight, a cache at work.</p>
          <Command text="npm run demo" />
        </li>
        <li>
          <h3>Send a file</h3>
          <p>
            Verified, recorded and announced; or drop one on <a href="/uploads">Uploads</a>.
          </p>
          <Command text={sendFile()} />
        </li>
        <li>
          <h3>Add a job</h3>
          <p>It waits for a worker; this opens the queue mail.</p>
          <Command text={`npx sluice jobs add mail '{"to":"ada"}'`} />
        </li>
      </ol>
    </Panel>
  );
}
