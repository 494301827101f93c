/**
 * A reporter for node:test that records every test as one JSON line: name, full path of names, file, outcome,
 * duration. `npm test` counts from it and checks the promises against it.
 */
export default async function* record(events) {
  /** Names of the suites and tests that are open, by nesting, per file: tests of several files interleave. */
  const open = new Map();
  for await (const { type, data } of events) {
    if (type === 'test:start') {
      const path = open.get(data.file) ?? [];
      path.length = data.nesting;
      path[data.nesting] = data.name;
      open.set(data.file, path);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A suite only sums up its tests, unless it broke by itself, in a hook.
    const brokeItself = type === 'test:fail' && data.details?.error?.failureType !== 'subtestsFailed';
    if (data.details?.type === 'suite' && !brokeItself) continue;
    const parents = (open.get(data.file) ?? []).slice(0, data.nesting);
    const line = {
      name: data.name,
      path: [...parents, data.name].join(' > '),
      file: data.file,
      outcome: outcomeOf(type, data),
      durationMs: data.details?.duration_ms ?? 0,
    };
    yield `${JSON.stringify(line)}\n`;
  }
}

function outcomeOf(type, data) {
  if (data.skip !== undefined || data.todo !== undefined) return 'skipped';
  return type === 'test:pass' ? 'passed' : 'failed';
}
