// `sluice completion`: completion for bash, zsh and fish. The scripts ask `sluice __complete` with the words so far, so that what is
// proposed is always what this version understands: commands, options, their choices, and the names of the server's queues.
import { Argument } from 'commander';
import { Api } from './api.js';
import { declare, type SluiceCommand } from './command.js';
import { safeLine } from './sanitise.js';
import type { Context } from './context.js';

/** A completion that takes longer is none. */
const patienceMs = 1_500;
/** Tells the scripts to complete names of files. */
const filesWord = ':files';

const scripts: Record<string, string> = {
  bash: `# sluice completion for bash: eval "$(sluice completion bash)"
_sluice() {
  local word="\${COMP_WORDS[COMP_CWORD]}" line value
  COMPREPLY=()
  while IFS= read -r line; do
    value="\${line%%$'\\t'*}"
    if [ "$value" = "${filesWord}" ]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "$word"))
    else
      COMPREPLY+=("$value")
    fi
  done < <(sluice __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _sluice sluice
`,
  zsh: `#compdef sluice
# sluice completion for zsh: eval "$(sluice completion zsh)"
_sluice() {
  local -a described
  local line value
  while IFS= read -r line; do
    value="\${line%%$'\\t'*}"
    if [[ "$value" == "${filesWord}" ]]; then
      _files
    else
      described+=("\${value//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done < <(sluice __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( \${#described} )) && _describe 'sluice' described
}
compdef _sluice sluice
`,
  fish: `# sluice completion for fish: sluice completion fish | source
function __sluice_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (sluice __complete $words[2..-1] 2>/dev/null)
    if string match -q '${filesWord}*' -- $line
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c sluice -f -a '(__sluice_complete)'
`,
};

export function completionCommand(program: SluiceCommand): void {
  declare(program, 'completion', 'Completion for your shell.')
    .addArgument(new Argument('<shell>').choices(Object.keys(scripts)))
    .example('completion bash >> ~/.bashrc', 'for good')
    .example('eval "$(sluice completion zsh)"', 'for this shell')
    .example('sluice completion fish > ~/.config/fish/completions/sluice.fish', 'for good')
    .completing('shell')
    .runs(async ({ out }, _flags: object, shell: string) => {
      const script = scripts[shell]!.trimEnd();
      out.one({ shell, script }, () => out.line(script));
    });
  const complete = program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false);
  complete.runs(async (context) => {
    // Commander has taken options of ours out of the words; they are needed as they were typed.
    const words = program.rawWords.slice(program.rawWords.indexOf('__complete') + 1);
    for (const [value, text] of await proposals(context, program, words))
      context.out.line(safeLine(value) + `\t${safeLine(text)}`);
  });
}

type Proposal = [value: string, text: string];

async function proposals(context: Context, program: SluiceCommand, words: string[]): Promise<Proposal[]> {
  const typed = words.at(-1) ?? '';
  const { command, place, pending } = walk(program, words.slice(0, -1));
  const found =
    pending ?? (typed.startsWith('-') ? optionsOf(program, command) : await wordsOf(context, command, place));
  return found.filter(([value]) => value === filesWord || value.startsWith(typed));
}

/** Follows the words that are complete: which command, which of its arguments is next, or which option waits for its value. */
function walk(
  program: SluiceCommand,
  words: string[],
): { command: SluiceCommand; place: number; pending?: Proposal[] } {
  let command = program;
  let place = 0;
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word.startsWith('-')) {
      const option = [...command.options, ...program.options].find(
        ({ long, short }) => word === long || word === short,
      );
      if (!option || option.isBoolean() || word.includes('=')) continue;
      i += 1;
      if (i >= words.length)
        return { command, place, pending: (option.argChoices ?? []).map((choice) => [choice, '']) };
      continue;
    }
    const next = command.commands.find((sub) => sub.name() === word) as SluiceCommand | undefined;
    if (next && place === 0) command = next;
    else place += 1;
  }
  return { command, place };
}

function optionsOf(program: SluiceCommand, command: SluiceCommand): Proposal[] {
  const all = command === program ? program.options : [...command.options, ...program.options];
  return [
    ...all.flatMap(({ long, description }): Proposal[] => (long ? [[long, description]] : [])),
    ['--help', 'help'],
  ];
}

async function wordsOf(context: Context, command: SluiceCommand, place: number): Promise<Proposal[]> {
  const subs = command.commands.filter((sub) => !sub.name().startsWith('_'));
  if (place === 0 && subs.length > 0) return subs.map((sub) => [sub.name(), sub.description()]);
  const args = command.registeredArguments;
  const at = Math.min(place, args.length - 1);
  if (at < 0 || (place >= args.length && !args.at(-1)!.variadic)) return [];
  if (args[at]!.argChoices) return args[at]!.argChoices.map((choice) => [choice, '']);
  const kind = command.completes[at];
  if (kind === 'file') return [[filesWord, '']];
  return kind === 'queue' ? queueNames(context) : [];
}

/** Silent when the server is away: a completion must not complain. */
async function queueNames({ api }: Context): Promise<Proposal[]> {
  const { url, key, tenant } = api;
  const hasty = new Api({ url, key, tenant, version: '', signal: AbortSignal.timeout(patienceMs) });
  try {
    const { items } = await hasty.get<{ items: { name: string }[] }>('/v1/queues');
    return items.map(({ name }) => [name, 'queue']);
  } catch {
    return [];
  }
}
