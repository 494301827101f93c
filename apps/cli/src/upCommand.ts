// `sluice up`: starts a server here, the way `npm start` does. Where this command is installed without the server, it says how.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { declare, type SluiceCommand } from './command.js';
import { cliErrors } from './errors.js';
import { exitCodes } from './exitCodes.js';
import { parseCount } from './parse.js';

/** From `apps/cli/dist/src/`. */
const starter = fileURLToPath(new URL('../../../../scripts/start.mjs', import.meta.url));
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

interface UpFlags {
  port?: number;
  host?: string;
  data?: string;
}

export function upCommand(program: SluiceCommand): void {
  declare(
    program,
    'up',
    'Start a server here, with a Redis and a PostgreSQL of its own unless told otherwise.',
  )
    .example('up', 'on port 7420, data in .sluice')
    .example('up --port 8080 --data /var/lib/sluice', 'elsewhere')
    .option('--port <port>', 'SLUICE_PORT', parseCount)
    .option('--host <address>', 'SLUICE_HOST')
    .option('--data <folder>', 'SLUICE_DATA_DIR')
    .completing()
    .runs(async ({ environment, lendTerminal }, { port, host, data }: UpFlags) => {
      if (!existsSync(starter))
        throw cliErrors.UNHEALTHY({
          what: 'the server is not part of this installation; in a checkout of Sluice run: npm start',
        });
      const child = spawn(process.execPath, [starter], {
        stdio: 'inherit',
        cwd: environment.folder,
        // A group of its own: a Ctrl-C reaches it through us, once. Two that are not quite at the same time would be two wishes.
        detached: true,
        env: {
          ...environment.all,
          ...(port !== undefined && { SLUICE_PORT: String(port) }),
          ...(host !== undefined && { SLUICE_HOST: host }),
          ...(data !== undefined && { SLUICE_DATA_DIR: data }),
        },
      });
      // The server ends in order; until then we stay.
      const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
      for (const signal of stopSignals) process.on(signal, pass);
      const [code, signal] = await lendTerminal(
        async () => (await once(child, 'close')) as [number | null, NodeJS.Signals | null],
      );
      for (const name of stopSignals) process.off(name, pass);
      return code ?? (signal === null ? exitCodes.ok : exitCodes.failed);
    });
}
