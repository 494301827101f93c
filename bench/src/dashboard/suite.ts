/*
 * The dashboard suite: how soon somebody who opens the page sees how it is, when there is much to see.
 *
 * The server is the one that `npm start` runs. Every visit is cold: a browser without a cache, a connection and a session of its own.
 * The server itself has been running for a while, as it has when somebody is called at night.
 */
import { chromiumProblem, startBrowser, startSluice } from '@sluice/testbed';
import { errors } from '../errors.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { saveResult } from '../results.js';
import { toJson, toTable } from './report.js';
import { setScene } from './scene.js';
import { FULL, QUICK, type Sizes } from './sizes.js';
import { untilChartsAreDrawn, visit, type Visit } from './visit.js';

export async function benchDashboard(options: BenchOptions): Promise<void> {
  if (options.only.length > 0) throw errors.BAD_COMMAND_LINE({ why: 'this suite has one measure' });
  const problem = chromiumProblem();
  if (problem !== undefined) throw errors.SERVER_FAILED({ side: 'the browser', why: problem });
  const sizes = { ...(options.quick ? QUICK : FULL) };
  sizes.rounds = options.rounds ?? sizes.rounds;
  const { visits, browserVersion } = await measureDashboard(sizes, say);
  const machine = await describeMachine({ browser: browserVersion });
  if (options.save) {
    say(
      `saved ${await saveResult('dashboard', new Date(), { machine, sizes, ...toJson(visits), rounds: visits })}`,
    );
  }
  const heading = `${machine.cpu}, ${machine.cores} cores; Node ${machine.node}; Chromium ${browserVersion}`;
  process.stdout.write(
    options.json
      ? `${JSON.stringify(toJson(visits), null, 2)}\n`
      : `${heading}\n\n${toTable(visits, sizes)}\n`,
  );
}

export async function measureDashboard(
  sizes: Sizes,
  tell: (line: string) => void,
): Promise<{ visits: Visit[]; browserVersion: string }> {
  const server = await startSluice({ SLUICE_LOG_LEVEL: 'error' });
  try {
    tell('setting the scene …');
    const scene = await setScene(/^Redis: (\S+?),/m.exec(server.welcome)![1]!, sizes);
    const browser = await startBrowser();
    try {
      // The first visit starts the sampler and warms the server; it does not count.
      const visits: Visit[] = [];
      for (let round = 0; round <= sizes.rounds; round++) {
        tell(round === 0 ? 'warm-up …' : `visit ${round} …`);
        visits.push(await visit(browser, server.url, sizes.waitingShown));
        if (round === 0 && sizes.charts) await untilChartsAreDrawn(browser, server.url);
      }
      return { visits: visits.slice(1), browserVersion: browser.version() };
    } finally {
      await browser.close();
      await scene.close();
    }
  } finally {
    await server.stop();
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
