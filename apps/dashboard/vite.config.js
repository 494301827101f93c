// How the page is packed: hashed files in dist/assets beside what the compiler writes, nothing inlined, so that a strict
// Content-Security-Policy holds, and no polyfill, because every browser with ES modules of this age preloads.
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    emptyOutDir: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    sourcemap: false,
    reportCompressedSize: false,
  },
});
