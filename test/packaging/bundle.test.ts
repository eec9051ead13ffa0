import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { stageBundle } from '../../scripts/bundle/stage-bundle.ts';
import { startHarness } from '../harness/harness.ts';
import { createHome } from '../harness/isolated-home.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

async function stagedBundle(): Promise<string> {
  const place = await createHome();
  onTestFinished(() => place.remove());
  const target = path.join(place.project, 'bundle');
  stageBundle(root, target);
  return target;
}

test('the bundle holds the server and its licences, and no Claude Code', async () => {
  const bundle = await stagedBundle();
  expect(readdirSync(bundle).sort()).toEqual(['LICENSE', 'dist', 'manifest.json', 'node_modules', 'package.json']);
  expect(existsSync(path.join(bundle, 'dist', 'third-party-notices.txt'))).toBe(true);
  expect(readdirSync(path.join(bundle, 'node_modules', '@anthropic-ai'))).toEqual(['claude-agent-sdk']);
});

test('the server in the bundle says clearly that Claude Code is missing', async () => {
  const bundle = await stagedBundle();
  const h = await startHarness({
    program: path.join(bundle, 'dist', 'main.mjs'),
    env: { CLAUDE_CODE_MCP_EXECUTABLE: 'claude-that-is-not-installed' },
  });
  const error = await h.fails('claude_code', { prompt: 'hello' }, 'INTERNAL');
  expect(error).toContain('(CLAUDE_CODE_MCP_EXECUTABLE) is not at');
  expect(error).toContain('claude-that-is-not-installed');
});
