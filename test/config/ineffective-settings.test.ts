import { createReadStream } from 'node:fs';
import { expect, it } from 'vitest';
import { ineffectiveSettings, loadSettings, unknownVariables } from '../../src/config/load-settings.ts';
import { thisHost } from '../../src/config/host.ts';
import { bundledClaudeCode } from '../../src/driver/claude-code-program.ts';

it.each([
  ['ALLOWED_DIR', 'ALLOWED_DIRS'],
  ['APROVALS', 'APPROVALS'],
  ['MAX_BUGDET_USD', 'MAX_BUDGET_USD'],
])('finds the misspelt setting %s', (name, nearest) => {
  expect(unknownVariables({ [`CLAUDE_CODE_MCP_${name}`]: '1' })).toEqual([
    { name: `CLAUDE_CODE_MCP_${name}`, nearest: `CLAUDE_CODE_MCP_${nearest}` },
  ]);
});

it('finds a variable with the prefix that is no setting at all', () => {
  for (const name of ['CLAUDE_CODE_MCP_BUDGET', 'CLAUDE_CODE_MCP_ALLOWED_DIRECTORIES'])
    expect(unknownVariables({ [name]: '5' })).toEqual([{ name, nearest: undefined }]);
});

it('finds APPROVALS without its prefix, which would protect nobody', () => {
  const found = [{ name: 'APPROVALS', nearest: 'CLAUDE_CODE_MCP_APPROVALS' }];
  expect(unknownVariables({ APPROVALS: 'human' })).toEqual(found);
  expect(unknownVariables({ APPROVALS: 'human', CLAUDE_CODE_MCP_APPROVALS: 'human' })).toEqual([]);
  expect(unknownVariables({ APPROVALS: '3' })).toEqual([]);
});

it('ignores settings and internal variables', () => {
  const names = ['MAX_SESSIONS', 'OWNER', 'SESSION', 'DEPTH', 'PARENT', 'SERVICE', 'SECRETS_FROM', 'TOKEN'];
  expect(unknownVariables(Object.fromEntries(names.map((name) => [`CLAUDE_CODE_MCP_${name}`, '1'])))).toEqual([]);
});

it('ignores the variables with the prefix that the bundled Claude Code has', async () => {
  const executable = bundledClaudeCode(process.platform, process.arch)?.executable;
  const names = new Set<string>();
  let rest = '';
  for await (const piece of createReadStream(executable!, { encoding: 'latin1', highWaterMark: 4 * 1024 * 1024 })) {
    const text = rest + String(piece);
    for (const [name] of text.matchAll(/CLAUDE_CODE_MCP_[A-Z_]+/g)) names.add(name);
    rest = text.slice(-100);
  }
  expect(names.size).toBeGreaterThan(10);
  expect(unknownVariables(Object.fromEntries([...names].map((name) => [name, '1'])))).toEqual([]);
});

it.each([
  [
    { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1' },
    'CLAUDE_CODE_MCP_ALLOW_DISK_RESUME (--allow-disk-resume) has no effect without',
  ],
  [
    { CLAUDE_CODE_MCP_SANDBOX_NETWORK: 'a.example' },
    'CLAUDE_CODE_MCP_SANDBOX_NETWORK (--sandbox-network) has no effect without',
  ],
  [{ CLAUDE_CODE_MCP_FOO: '1' }, 'CLAUDE_CODE_MCP_FOO is not a setting of this server'],
  [{ CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: '1', CLAUDE_CODE_MCP_RESUME_SECRET: 'x'.repeat(40) }, undefined],
  [{}, undefined],
])('%j: %s', (env, what) => {
  const found = ineffectiveSettings(env, loadSettings({ ...thisHost(), argv: [], env }));
  expect(found.map((one) => one.what)).toEqual(what === undefined ? [] : [expect.stringContaining(what)]);
});
