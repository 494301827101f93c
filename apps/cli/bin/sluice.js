#!/usr/bin/env node
// What npm links as `sluice`. It stands in the repository, not in dist, so that the link can be made before the first build.
try {
  await import('../dist/src/main.js');
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('sluice: not built yet; run: npm run build');
  process.exitCode = 1;
}
