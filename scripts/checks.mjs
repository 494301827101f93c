/** Lint and format, as `npm test` and their own commands run them. Each returns an exit code. */
import { run, tool } from './prepare.mjs';

export function lint(args = []) {
  return run(process.execPath, [tool('oxlint', 'oxlint'), '--type-aware', '--deny-warnings', ...args]);
}

export function checkFormat(args = ['--check']) {
  return run(process.execPath, [tool('prettier', 'prettier'), '--log-level', 'warn', ...args, '.']);
}
