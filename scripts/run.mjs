/**
 * The smaller commands: `npm run build | lint | format | bench | chaos | fuzz | demo | screenshot`. Each prepares what it needs and hands its
 * arguments on; its exit code is that of the program behind it.
 */
import { join } from 'node:path';
import { compile, prepare, root, run, stopWith } from './prepare.mjs';
import { checkFormat, lint } from './checks.mjs';

const commands = {
  build: async () => {
    await prepare({ build: false });
    return compile();
  },
  lint: async (args) => {
    // Types that a package exports are read from its compiled declarations.
    await prepare();
    return lint(args);
  },
  format: async (args) => {
    await prepare({ build: false });
    return checkFormat(args.length > 0 ? args : ['--write']);
  },
  bench: (args) => program('bench', args),
  chaos: (args) => program('chaos', args),
  fuzz: (args) => program('fuzz', args),
  demo: async (args) => {
    await prepare();
    return run(process.execPath, [join(root, 'demo/dist/src/main.js'), ...args], { stdout: 1 });
  },
  screenshot: async (args) => {
    await prepare({ redis: true, chromium: true });
    return run(process.execPath, [join(root, 'apps/dashboard/dist/test/screenshot.js'), ...args], {
      stdout: 1,
    });
  },
};

const [name, ...args] = process.argv.slice(2);
if (!Object.hasOwn(commands, name ?? '')) stopWith(`there is no command ${name}`);
process.exitCode = await commands[name](args);

async function program(folder, programArgs) {
  const isNamed = (suite) => programArgs.includes(suite);
  await prepare({
    redis: true,
    openssl: true,
    versitygw: isNamed('uploads'),
    compiler: folder === 'bench' && isNamed('uploads'),
    chromium: folder === 'bench' && isNamed('dashboard'),
  });
  return run(process.execPath, [join(root, folder, 'dist/src/main.js'), ...programArgs], { stdout: 1 });
}
