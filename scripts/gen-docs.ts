/**
 * Rewrites the generated documents and parts; `--check` only reports what is out of date.
 * Generates whole reference pages, the parts between markers in other pages, and wherever it stands the name under which
 * the package is published, which is that of package.json.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../package.json' with { type: 'json' };
import { hubSettingsMarkdownTable, settingsMarkdownTable } from '../src/config/help.ts';
import { TOOLSETS } from '../src/mcp/toolsets.ts';
import { apiDocument, apiRoutesTable } from './docs/api-part.ts';
import { benchPart, callerPart, fleetPart, peersPart } from './docs/bench-part.ts';
import { parametersOf } from './docs/documented-tool.ts';
import { errorsTable, openCommandsTable } from './docs/errors-table.ts';
import { fillGeneratedParts } from './docs/generated-parts.ts';
import { isTopLevel, parameterTable, referencePage } from './docs/reference-page.ts';
import { toolNames, toolsTable } from './docs/tools-table.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const unscopedName = packageJson.name.replace(/^@[^/]+\//, '');

const PARTS: Readonly<Record<string, () => string>> = {
  settings: settingsMarkdownTable,
  'hub-settings': hubSettingsMarkdownTable,
  errors: errorsTable,
  'api-routes': apiRoutesTable,
  'open-commands': openCommandsTable,
  bench: () => benchPart(path.join(root, 'bench', 'results.json')),
  'fleet-figures': () => fleetPart(path.join(root, 'bench', 'results.json')),
  peers: () => peersPart(path.join(root, 'bench', 'results.json')),
  caller: () => callerPart(path.join(root, 'bench', 'results.json')),
  install: installSteps,
  'example-embed': () => programPart('embed.mjs', 'js'),
  'example-poll-js': () => programPart('poll.mjs', 'js'),
  'example-poll-py': () => programPart('poll.py', 'python'),
  tools: () => toolNames(TOOLSETS.compact),
  'tools-compact': () => toolsTable(TOOLSETS.compact),
  'tools-explicit': () => toolsTable(TOOLSETS.explicit),
  'parameters-claude-code': () => {
    const [start] = TOOLSETS.compact;
    return start ? parameterTable(parametersOf(start).filter(isTopLevel)) : '';
  },
};

const PAGES: Readonly<Record<string, () => string>> = {
  'docs/reference-compact.md': () => referencePage('compact', TOOLSETS.compact),
  'docs/reference-explicit.md': () => referencePage('explicit', TOOLSETS.explicit),
  'docs/settings.md': () => withParts('docs/settings.md'),
  'docs/fleet.md': () => withParts('docs/fleet.md'),
  'docs/guide.md': () => withParts('docs/guide.md'),
  'docs/performance.md': () => withParts('docs/performance.md'),
  'docs/programs.md': () => withParts('docs/programs.md'),
  'docs/troubleshooting.md': () => withParts('docs/troubleshooting.md'),
  'docs/api.md': () => withParts('docs/api.md'),
  'docs/rules.md': () => withParts('docs/rules.md'),
  'docs/api.openapi.json': () => apiDocument(packageJson.version),
  'README.md': () => withParts('README.md'),
  'examples/embed.mjs': () => program('embed.mjs'),
  'examples/two-clients.mjs': () => program('two-clients.mjs'),
  'examples/worktrees.mjs': () => program('worktrees.mjs'),
  'server.json': () => manifest('server.json', `io.github.OWNER/${unscopedName}`),
  'packaging/mcpb-manifest.json': () => manifest('packaging/mcpb-manifest.json', unscopedName),
  // The name of a plugin is its own: it is part of the names of its tools.
  'plugin/.claude-plugin/plugin.json': () => manifest('plugin/.claude-plugin/plugin.json', undefined),
};

/** What npm calls the file of a package, scoped or not. */
function packedFile(version: string): string {
  return `${packageJson.name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`;
}

function installSteps(): string {
  const lines = [
    'npm ci',
    'npm pack',
    `npm install -g ./${packedFile(packageJson.version)}`,
    'claude-code-mcp doctor           # checks Node, Claude Code and your login, and says what to fix',
    'claude-code-mcp install codex    # or another client, below',
  ];
  return ['```sh', ...lines, '```', ''].join('\n');
}

/** A program that the tests run, as the page shows it. */
function programPart(file: string, language: string): string {
  return `\`\`\`${language}\n${program(file)}\`\`\`\n`;
}

function program(file: string): string {
  const text = readFileSync(path.join(root, 'examples', file), 'utf8');
  return text.replace(/^(import \{ createEngine.* from )'[^']+'/m, `$1'${packageJson.name}'`);
}

function withParts(file: string): string {
  return fillGeneratedParts(readFileSync(path.join(root, file), 'utf8'), PARTS, file)
    .replaceAll(/`npm uninstall -g [^`]+`/g, `\`npm uninstall -g ${packageJson.name}\``)
    .replaceAll(/`npm install \.\/[^`]+-<version>\.tgz`/g, `\`npm install ./${packedFile('<version>')}\``);
}

/** Name and version are those of package.json. */
function manifest(file: string, name: string | undefined): string {
  const text = readFileSync(path.join(root, file), 'utf8');
  const written = { ...(name !== undefined && { name }), version: packageJson.version };
  return Object.entries(written).reduce(
    (result, [field, value]) =>
      result.replace(
        new RegExp(`^(\\s*"${field}": )"[^"]*"`, 'm'),
        (_whole, start: string) => start + JSON.stringify(value),
      ),
    text,
  );
}

function isCurrent(file: string, wanted: string): boolean {
  const target = path.join(root, file);
  // A checkout on Windows may have different line endings.
  return existsSync(target) && readFileSync(target, 'utf8').replaceAll('\r\n', '\n') === wanted;
}

const onlyCheck = process.argv.includes('--check');
const outOfDate = Object.entries(PAGES)
  .map(([file, make]) => ({ file, text: make().replaceAll('\r\n', '\n') }))
  .filter(({ file, text }) => !isCurrent(file, text));

for (const { file, text } of outOfDate) {
  if (onlyCheck) {
    console.error(`${file} is out of date: run npm run gen`);
    process.exitCode = 1;
    continue;
  }
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), text);
  console.log(`wrote ${file}`);
}
if (outOfDate.length === 0) console.log('All generated documents are up to date.');
