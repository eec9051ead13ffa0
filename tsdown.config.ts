import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type UserConfig } from 'tsdown';
import { page } from './scripts/build/page.ts';
import { precomputed } from './scripts/build/precomputed.ts';
import { withoutNotes } from './scripts/build/without-notes.ts';
import { thirdPartyNotices } from './scripts/third-party-notices.ts';

// Everything that gets bundled is listed, so that a new transitive dependency fails the build until somebody has
// looked at it and at its licence.
const bundled = ['@modelcontextprotocol/server', '@modelcontextprotocol/core', 'zod'];
// Only `install` and `uninstall` load it.
const bundledForInstall = ['jsonc-parser'];
// Only `hub open --qr` and the dialog of the dashboard load it.
const bundledForQrCodes = ['uqr'];
// The client and what it needs to start a process: only the demo loads it.
const bundledForDemo = [
  '@modelcontextprotocol/client',
  'cross-spawn',
  'eventsource',
  'eventsource-parser',
  'isexe',
  'jose',
  'path-key',
  'pkce-challenge',
  'shebang-command',
  'shebang-regex',
  'which',
];

// Loaded lazily. The Agent SDK and libsql find their native binaries relative to themselves.
const neverBundle = [/^@anthropic-ai\/claude-agent-sdk/, 'libsql', 'pg'];

// A start that builds and converts schemas takes twice as long.
const atBuildTime = [
  { module: 'src/mcp/tool-listing.ts', exportName: 'TOOL_LISTING', from: 'src/mcp/tool-listing.ts' },
  {
    module: 'src/transports/opening-answers.ts',
    exportName: 'OPENING_ANSWERS',
    from: 'scripts/build/opening-answers.ts',
  },
];

// What a program is read for is in the repository; a fifth of the package would be comments.
const withoutComments = { comments: { legal: true, annotation: true, jsdoc: false } };

const common: UserConfig = {
  platform: 'node',
  target: 'node20',
  format: 'esm',
  outDir: 'dist',
  sourcemap: true,
  hash: false,
  alias: {
    '@modelcontextprotocol/server/_shims': fileURLToPath(new URL('src/transports/mcp-platform.ts', import.meta.url)),
    // Its CommonJS entry requires its own files in a way that no bundler sees.
    'jsonc-parser': 'jsonc-parser/lib/esm/main.js',
  },
  // A build must not take the files away from a server or a test that runs from them; `prepack` starts clean.
  clean: false,
  // Only says that making the declarations takes longest; as a warning it would fail the build in CI.
  checks: { pluginTimings: false },
  report: { gzip: false },
};

const builds: UserConfig[] = [
  {
    ...common,
    name: 'bin',
    entry: { main: 'src/bin/main.ts' },
    dts: false,
    deps: { neverBundle, onlyBundle: [...bundled, ...bundledForInstall, ...bundledForDemo, ...bundledForQrCodes] },
    outputOptions: {
      ...withoutComments,
      chunkFileNames: 'chunks/[name].mjs',
      // All that is needed for the first answer, in one file: each further one costs the start a millisecond or two.
      codeSplitting: {
        groups: [
          {
            name: 'opening',
            test: /[\\/](src[\\/](config|errors|schema[\\/]setting-choices|cli[\\/]run\.ts|transports[\\/]open|text[\\/]line-diff)|package\.json)/,
          },
        ],
      },
    },
    plugins: [precomputed(atBuildTime), withoutNotes(), thirdPartyNotices('third-party-notices.txt')],
  },
];

// One file without dependencies, which may outlive the version that it came with.
builds.push({
  ...common,
  name: 'keeper',
  entry: { keeper: 'src/bin/keeper.ts' },
  dts: false,
  sourcemap: false,
  deps: { onlyBundle: [] },
  outputOptions: withoutComments,
});

// Its own build: sharing chunks with the command would split the command into more files to load at its start.
if (existsSync('src/index.ts')) {
  builds.push({
    ...common,
    name: 'library',
    entry: { index: 'src/index.ts' },
    dts: true,
    deps: { neverBundle, onlyBundle: bundled },
    plugins: [precomputed(atBuildTime), withoutNotes()],
    outputOptions: { ...withoutComments, chunkFileNames: 'chunks/index-[name].mjs' },
  });
}

builds.push({
  ...common,
  name: 'dashboard',
  platform: 'browser',
  target: 'es2022',
  outDir: 'dist/dashboard',
  entry: { main: 'dashboard/src/main.tsx' },
  tsconfig: 'dashboard/tsconfig.json',
  dts: false,
  sourcemap: false,
  minify: true,
  deps: { onlyBundle: ['preact', '@preact/signals', '@preact/signals-core', ...bundledForQrCodes] },
  plugins: [page('dashboard'), thirdPartyNotices('third-party-notices.txt')],
  outputOptions: {
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
    assetFileNames: '[name]-[hash][extname]',
  },
});

// Its own build and a fixed name: a browser checks this address for a newer one, and it may share no chunk with the page.
builds.push({
  ...common,
  name: 'service-worker',
  platform: 'browser',
  target: 'es2022',
  outDir: 'dist/dashboard',
  entry: { 'service-worker': 'dashboard/src/service-worker.ts' },
  tsconfig: 'dashboard/tsconfig.json',
  dts: false,
  sourcemap: false,
  minify: true,
  outputOptions: { entryFileNames: '[name].js' },
});

export default defineConfig(builds);
