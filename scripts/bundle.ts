/** Makes the MCPB bundle with its own tool: `npm run bundle` writes .build/claude-code-mcp-<version>.mcpb. */

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import packageJson from '../package.json' with { type: 'json' };
import { stageBundle } from './bundle/stage-bundle.ts';

const MCPB = '@anthropic-ai/mcpb@2.1.2';

const root = fileURLToPath(new URL('..', import.meta.url));
const staged = path.join(root, '.build', 'mcpb');
const bundle = path.join(root, '.build', `${packageJson.name}-${packageJson.version}.mcpb`);

stageBundle(root, staged);
const { status } = spawnSync('npx', ['--yes', MCPB, 'pack', staged, bundle], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
});
process.exitCode = status ?? 1;
