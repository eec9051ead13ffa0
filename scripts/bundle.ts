/**
 * Builds the MCPB bundle: `npm run bundle` writes .build/claude-code-mcp-<version>.mcpb.
 * With `-- --repository <owner>/<name>` also .build/server.json, the entry for the MCP registry.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { packExtension } from '@anthropic-ai/mcpb';
import packageJson from '../package.json' with { type: 'json' };
import template from '../server.json' with { type: 'json' };
import { registryEntry } from './bundle/registry-entry.ts';
import { stageBundle } from './bundle/stage-bundle.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const staged = path.join(root, '.build', 'mcpb');
const name = `${packageJson.name.replace(/^@[^/]+\//, '')}-${packageJson.version}.mcpb`;
const bundle = path.join(root, '.build', name);

const { repository, check } = parseArgs({
  options: { repository: { type: 'string' }, check: { type: 'boolean', default: false } },
}).values;
// `--check` stages what would be packed, and packs nothing.
stageBundle(root, staged);
if (!check && !(await packExtension({ extensionPath: staged, outputPath: bundle }))) process.exit(1);
if (!check && repository !== undefined) {
  const entry = registryEntry(template, { repository, bundle: { name, content: readFileSync(bundle) } });
  writeFileSync(path.join(root, '.build', 'server.json'), `${JSON.stringify(entry, null, 2)}\n`);
  console.log(`Output: ${path.join(root, '.build', 'server.json')}`);
}
