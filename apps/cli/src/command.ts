// A command as we declare it: examples first, then what commander needs. The action gets a context and its own arguments; what it
// throws becomes a sentence and an exit code in run.ts.
import { Command, Help, Option } from 'commander';
import { makeContext, type ChangeOptions, type Context, type GlobalOptions, type World } from './context.js';
import { parsePositive } from './parse.js';

export interface Example {
  /** Without the leading `sluice ` where it begins with one of our commands. */
  line: string;
  does: string;
}

/** What a word of a command can be completed with, beyond commands and options. */
export type Completes = 'queue' | 'file' | 'shell';

/** What a command does; a number is the code it ends with. `never` takes a function of any options and arguments; commander checks them at run time. */
type Work = (context: Context, options: never, ...args: never[]) => Promise<number | void>;

export class SluiceCommand extends Command {
  readonly examples: Example[] = [];
  readonly completes: (Completes | undefined)[] = [];
  /** For the root: the command line as it was typed. */
  rawWords: string[] = [];
  /** For the root: what the command that ran wants to end with. */
  exitCode: number | undefined;
  #world: World | undefined;

  override createCommand(name?: string): SluiceCommand {
    return new SluiceCommand(name);
  }

  override createHelp(): Help {
    return Object.assign(new ExamplesFirst(), this.configureHelp());
  }

  /** For the root: what all commands below run in. */
  runIn(world: World): this {
    this.#world = world;
    return this;
  }

  example(line: string, does: string): this {
    this.examples.push({ line, does });
    return this;
  }

  /** The nth argument completes like this. */
  completing(...completes: (Completes | undefined)[]): this {
    this.completes.push(...completes);
    return this;
  }

  /** The action with its context. Arguments come as commander has them; an absent one is undefined. */
  runs(work: Work): this {
    return this.action(async (...received: unknown[]) => {
      const args = received.slice(0, -2) as never[];
      const options = this.optsWithGlobals<GlobalOptions & ChangeOptions>();
      const root = rootOf(this) as SluiceCommand;
      const context = await makeContext(root.#world!, options);
      const code = await work(context, options as never, ...args);
      if (typeof code === 'number') root.exitCode = code;
    });
  }
}

/** Adds a command; its description says in one line what it is for. */
export function declare(parent: SluiceCommand, nameAndArgs: string, description: string): SluiceCommand {
  return parent.command(nameAndArgs).description(description);
}

/** A group of commands: `sluice queues ls`. */
export function group(parent: SluiceCommand, name: string, description: string): SluiceCommand {
  return declare(parent, name, description);
}

export interface ListOptions {
  limit: number;
  all?: boolean;
}

const usualLimit = 50;

export function listOptions(command: SluiceCommand): SluiceCommand {
  return command
    .addOption(
      new Option('-n, --limit <count>', 'at most so many').default(usualLimit).argParser(parsePositive),
    )
    .option('-a, --all', 'all of them, page by page');
}

export function wishOf({ limit, all = false }: ListOptions): { limit: number; all: boolean } {
  return { limit, all };
}

export const yesOption = ['-y, --yes', 'do not ask'] as const;
export const dryRunOption = ['--dry-run', 'say what would happen, and change nothing'] as const;

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent) : command;
}

/** The line as it is typed; one that begins with another program is whole already. */
export function wholeLine(command: Command, line: string): string {
  const isOurs = rootOf(command).commands.some((sub) => line.split(' ')[0] === sub.name());
  return isOurs ? `sluice ${line}` : line;
}

/** Side by side where all of them fit, otherwise what it does below each: a line that is to be copied is not broken. */
function exampleLines(command: Command, examples: readonly Example[], width: number): string[] {
  const rows = examples.map(({ line, does }) => ({ line: wholeLine(command, line), does }));
  const widest = Math.max(...rows.map(({ line }) => line.length));
  const fits = rows.every(({ does }) => 2 + widest + 2 + does.length <= width);
  return fits
    ? rows.map(({ line, does }) => `  ${line.padEnd(widest)}  ${does}`)
    : rows.flatMap(({ line, does }) => [`  ${line}`, `      ${does}`]);
}

/** Whoever asks for help wants to see how it is done; the reference follows. */
class ExamplesFirst extends Help {
  override showGlobalOptions = true;

  override formatHelp(command: Command, helper: Help): string {
    const width = helper.helpWidth ?? 80;
    const { examples } = command as SluiceCommand;
    const pairs = (rows: [string, string][]): string[] => {
      const widest = Math.max(0, ...rows.map(([term]) => term.length));
      return rows.map(([term, text]) => helper.formatItem(term, widest, text, helper));
    };
    const section = (title: string, lines: string[]): string[] =>
      lines.length === 0 ? [] : [helper.styleTitle(title), ...lines, ''];
    return [
      helper.boxWrap(helper.commandDescription(command), width),
      '',
      ...section('Examples:', exampleLines(command, examples, width)),
      ...section('Usage:', [`  ${helper.commandUsage(command)}`]),
      ...section(
        'Arguments:',
        pairs(
          helper
            .visibleArguments(command)
            .filter(({ description }) => description !== '')
            .map((arg) => [helper.argumentTerm(arg), helper.argumentDescription(arg)]),
        ),
      ),
      ...section(
        'Commands:',
        pairs(
          helper
            .visibleCommands(command)
            .map((sub) => [helper.subcommandTerm(sub), helper.subcommandDescription(sub)]),
        ),
      ),
      ...section(
        'Options:',
        pairs(
          helper
            .visibleOptions(command)
            .map((option) => [helper.optionTerm(option), helper.optionDescription(option)]),
        ),
      ),
      ...section(
        'Everywhere:',
        pairs(
          helper
            .visibleGlobalOptions(command)
            .filter(({ long }) => long !== '--version')
            .map((option) => [helper.optionTerm(option), helper.optionDescription(option)]),
        ),
      ),
    ].join('\n');
  }

  /** `queues ls`, without the options that Commander adds to each. */
  override subcommandTerm(command: Command): string {
    const args = command.registeredArguments.map((arg) => {
      const name = `${arg.name()}${arg.variadic ? '…' : ''}`;
      return arg.required ? `<${name}>` : `[${name}]`;
    });
    return [command.name(), ...args].join(' ');
  }
}
