// The whole command line as one tree: options that every command has, and the groups, each from its own file.
import { Option, type OutputConfiguration } from 'commander';
import { alertsCommand } from './alertsCommand.js';
import { auditCommand } from './auditCommand.js';
import { cacheCommands } from './cacheCommands.js';
import { SluiceCommand } from './command.js';
import { completionCommand } from './completionCommand.js';
import type { World } from './context.js';
import { deadCommands } from './deadCommands.js';
import { doctorCommand } from './doctorCommand.js';
import { downloadCommand } from './downloadCommand.js';
import { eventCommands } from './eventCommands.js';
import { fileCommands } from './fileCommands.js';
import { helpCommand } from './helpCommand.js';
import { jobCommands } from './jobCommands.js';
import { keyCommands } from './keyCommands.js';
import { loginCommands } from './loginCommands.js';
import { operationCommands } from './operationCommands.js';
import type { Screen } from './output.js';
import { queueCommands } from './queueCommands.js';
import { redisCommands } from './redisCommands.js';
import { retryCommands } from './retryCommands.js';
import { scheduleCommands } from './scheduleCommands.js';
import { statusCommand } from './statusCommand.js';
import { topCommand } from './topCommand.js';
import { traceCommand } from './traceCommand.js';
import { upCommand } from './upCommand.js';
import { uploadCommand } from './uploadCommand.js';
import { uploadsCommands } from './uploadsCommands.js';
import { version } from './version.js';
import { webhookCommands } from './webhookCommands.js';
import { workerCommands } from './workerCommands.js';

/** Of help where nobody knows the width. */
const usualWidth = 80;

export function makeProgram(world: World): SluiceCommand {
  const program = new SluiceCommand('sluice')
    .description('Files in, work done, results out: a Sluice server from your terminal.')
    .example('up', 'start a server here')
    .example('upload film.mp4', 'a file to it')
    .example('status', 'is everything well?')
    .example('dead groups', 'what jobs died of')
    .example('top', 'watch it')
    .runIn(world)
    .version(version, '-V, --version', 'the version of this command')
    .helpOption('-h, --help', 'this, beginning with examples')
    .helpCommand('help [command]', 'Help, beginning with examples.')
    .option('-u, --url <address>', 'where the server is; SLUICE_URL, or what login kept')
    .option('-k, --key <key>', 'who asks; better SLUICE_KEY or login, because others can see arguments')
    .option('--tenant <tenant>', 'for whom a key of the installation acts; SLUICE_TENANT')
    .option('--json', 'JSON on stdout: one line per item of a list')
    .option('-q, --quiet', 'say nothing but data and failures')
    .addOption(new Option('--color <when>', 'colours').choices(['always', 'never', 'auto']))
    .configureOutput(printingTo(world))
    .showSuggestionAfterError();
  upCommand(program);
  statusCommand(program);
  topCommand(program);
  uploadCommand(program);
  downloadCommand(program);
  fileCommands(program);
  uploadsCommands(program);
  traceCommand(program);
  queueCommands(program);
  jobCommands(program);
  retryCommands(program);
  deadCommands(program);
  operationCommands(program);
  workerCommands(program);
  scheduleCommands(program);
  cacheCommands(program);
  eventCommands(program);
  redisCommands(program);
  alertsCommand(program);
  auditCommand(program);
  keyCommands(program);
  webhookCommands(program);
  doctorCommand(program);
  loginCommands(program);
  completionCommand(program);
  helpCommand(program);
  return program;
}

/** Help and complaints of commander go where everything else goes. */
function printingTo({ stdout, stderr }: World): OutputConfiguration {
  const widthOf = (screen: Screen): number => (screen.isTTY ? (screen.columns ?? usualWidth) : usualWidth);
  return {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    getOutHelpWidth: () => widthOf(stdout),
    getErrHelpWidth: () => widthOf(stderr),
    getOutHasColors: () => false,
    getErrHasColors: () => false,
    outputError: (text, write) => write(text.replace(/^error: /, 'sluice: ')),
  };
}
