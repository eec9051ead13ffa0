import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createHome } from '../harness/isolated-home.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The Claude Code that the Agent SDK installs for this platform. */
function bundledClaude(): string {
  const { platform, arch } = process;
  const sdk = createRequire(import.meta.url).resolve('@anthropic-ai/claude-agent-sdk');
  const require = createRequire(sdk);
  return require.resolve(
    `@anthropic-ai/claude-agent-sdk-${platform}-${arch}/claude${platform === 'win32' ? '.exe' : ''}`,
  );
}

test.each(['.', 'plugin'])('Claude Code accepts the manifest in %s', async (directory) => {
  const place = await createHome();
  onTestFinished(() => place.remove());
  const env = { ...place.env(), CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' };
  const args = ['plugin', 'validate', '--strict', '--json', path.join(root, directory)];
  const { stdout } = await promisify(execFile)(bundledClaude(), args, { env, cwd: place.project }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(JSON.parse(stdout)).toMatchObject({ success: true, manifest: { errors: [], warnings: [] } });
});

test('Claude Code installs the plugin with the commands in its README', async () => {
  const place = await createHome();
  onTestFinished(() => place.remove());
  const env = { ...place.env(), CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' };
  const readme = readFileSync(path.join(root, 'plugin', 'README.md'), 'utf8');
  const lines = [...readme.matchAll(/^claude (plugin [^#\n]+)/gm)].map(([, line = '']) => line.trim().split(' '));
  expect(lines).toHaveLength(2);
  for (const line of lines) await promisify(execFile)(bundledClaude(), line, { env, cwd: root });
  const { stdout } = await promisify(execFile)(bundledClaude(), ['plugin', 'list', '--json'], { env, cwd: root });
  expect(JSON.parse(stdout)).toMatchObject([{ id: 'coding-sessions@coding-sessions', enabled: true }]);
});
