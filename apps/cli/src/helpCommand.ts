// `sluice help`: the help of any command, as deep as its words lead. Commander's own knows one word, and answers an unknown one with everything.
import { declare, type SluiceCommand } from './command.js';

export function helpCommand(program: SluiceCommand): void {
  program.helpCommand(false);
  declare(program, 'help', 'Help, beginning with examples.')
    .argument('[command...]', 'its words')
    .example('help dead replay', 'of one command')
    .example('help dead', 'of a group')
    .action(async (words: string[]) => {
      let command = program;
      for (const word of words) {
        const next = command.commands.find((sub) => sub.name() === word) as SluiceCommand | undefined;
        // Whoever is asked for what does not exist says what was meant.
        if (!next) return void (await command.parseAsync([word], { from: 'user' }));
        command = next;
      }
      command.outputHelp();
    });
}
