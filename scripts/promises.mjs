/**
 * Holds `docs/promises.md` against what the tests did. A promise is a row of a table there, and it names its proof:
 *
 *     | An accepted job never vanishes. | test: `a rescued job runs again`, `a restart loses nothing` |
 *
 * Each name is a test's own name, or the whole path of names (`suite > test`). A row without a test, a test that
 * did not run, was skipped or failed: each breaks the promise.
 */
export function promisesOf(markdown) {
  const rows = [];
  const lines = markdown.split('\n');
  for (const [index, line] of lines.entries()) {
    const isRow = line.trimStart().startsWith('|') && !isRule(line) && !isRule(lines[index + 1] ?? '');
    const tests = namedTests(line);
    if (isRow || tests.length > 0) rows.push({ line: index + 1, text: line.trim(), tests });
  }
  return rows;
}

/** Returns one sentence for each broken promise; nothing means all are kept. */
export function brokenPromises(markdown, records) {
  const rows = promisesOf(markdown);
  if (rows.length === 0) return ['no promise found'];
  const outcomes = new Map();
  for (const { name, path, outcome } of records) {
    for (const key of new Set([name, path])) outcomes.set(key, [...(outcomes.get(key) ?? []), outcome]);
  }
  return rows.flatMap(({ line, text, tests }) => {
    if (tests.length === 0) return [`line ${line} names no test: ${text}`];
    return tests.flatMap((name) => {
      const seen = outcomes.get(name);
      if (seen === undefined) return [`line ${line}: the test did not run: ${name}`];
      return seen.every((outcome) => outcome === 'passed') ? [] : [`line ${line}: the test ${seen}: ${name}`];
    });
  });
}

function isRule(line) {
  return /^\s*\|[\s|:-]+\|\s*$/.test(line);
}

function namedTests(line) {
  return [...line.matchAll(/test:((?:[\s,]*`[^`]+`)+)/g)].flatMap(([, names]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
}
