import { defineConfig } from 'tsdown';

// Development scripts, bundled because Node 20 does not run TypeScript. `.build` lies as deep as `scripts`,
// so paths relative to import.meta.url mean the same in both.
export default defineConfig({
  entry: ['scripts/*.ts', '!scripts/third-party-notices.ts'],
  platform: 'node',
  target: 'node20',
  format: 'esm',
  outDir: '.build',
  sourcemap: true,
  clean: false,
  dts: false,
  hash: false,
  outputOptions: { chunkFileNames: 'chunks/[name].mjs' },
  deps: { skipNodeModulesBundle: true },
});
