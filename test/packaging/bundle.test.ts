import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { packExtension, unpackExtension } from '@anthropic-ai/mcpb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stageBundle } from '../../scripts/bundle/stage-bundle.ts';
import { startHarness } from '../harness/harness.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

let place: IsolatedHome;
let bundle: string;

beforeAll(async () => {
  place = await createHome();
  const staged = path.join(place.project, 'staged');
  const file = path.join(place.project, 'claude-code-mcp.mcpb');
  bundle = path.join(place.project, 'installed');
  stageBundle(root, staged);
  expect(await packExtension({ extensionPath: staged, outputPath: file, silent: true })).toBe(true);
  expect(await unpackExtension({ mcpbPath: file, outputDir: bundle, silent: true })).toBe(true);
});
afterAll(() => place.remove());

/** The variables that a client sets from the manifest: the given answers, defaults for the rest. */
function variables(answers: Record<string, string>): Record<string, string> {
  const { server, user_config } = JSON.parse(readFileSync(path.join(bundle, 'manifest.json'), 'utf8'));
  const valueOf = (name: string): string => answers[name] ?? String(user_config[name].default);
  return Object.fromEntries(
    Object.entries<string>(server.mcp_config.env).map(([name, text]) => [
      name,
      text.replace(/\$\{user_config\.(\w+)\}/g, (_whole, asked: string) => valueOf(asked)),
    ]),
  );
}

async function startError(answers: Record<string, string>): Promise<string> {
  const h = await startHarness({ program: path.join(bundle, 'dist', 'main.mjs'), env: variables(answers) });
  return h.fails('claude_code', { prompt: 'hello' }, 'INTERNAL');
}

test('the bundle contains the server and its licences, but not Claude Code', () => {
  expect(readdirSync(bundle).sort()).toEqual(['LICENSE', 'dist', 'manifest.json', 'node_modules', 'package.json']);
  expect(existsSync(path.join(bundle, 'dist', 'third-party-notices.txt'))).toBe(true);
  expect(readdirSync(path.join(bundle, 'node_modules', '@anthropic-ai'))).toEqual(['claude-agent-sdk']);
  const files = readdirSync(bundle, { recursive: true, encoding: 'utf8' }).map((file) => path.join(bundle, file));
  // Claude Code alone is more than 200 MB, whatever file it is in.
  expect(files.filter((file) => statSync(file).size > 3_000_000)).toEqual([]);
});

test('the bundled server says that Claude Code is missing, and what to do', async () => {
  const error = await startError({ claude: 'claude-that-is-not-installed' });
  expect(error).toContain('there is no program called claude-that-is-not-installed on its PATH');
  expect(error).toContain('Install Claude Code, or set its full path');
});

test('the bundled server says that Claude Code is not at the configured path', async () => {
  const nowhere = path.join(place.home, 'nowhere', 'claude');
  expect(await startError({ claude: nowhere })).toContain(
    `is not at ${nowhere}: install it there, or correct the path`,
  );
});

test('the bundled server asks for a path if the field is empty', async () => {
  const error = await startError({ claude: '' });
  expect(error).toContain('Claude Code is not installed');
  expect(error).toContain('Install Claude Code and set its path');
});
