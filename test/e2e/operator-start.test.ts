/** The command: what it prints, what stops it, and that every rule can be given as variable and as flag. */

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { flagOf, rowOf, SETTING_KEYS } from '../../src/config/settings-table.ts';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import { runCommand } from '../harness/run-command.ts';

describe('the command', () => {
  it('tells its version', async () => {
    expect(await runCommand({ args: ['--version'] })).toEqual({
      code: 0,
      stdout: `${packageJson.version}\n`,
      stderr: '',
    });
  });

  it('tells every rule in its help', async () => {
    const { code, stdout, stderr } = await runCommand({ args: ['--help'] });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const key of SETTING_KEYS) expect(stdout).toContain(flagOf(key));
    for (const name of SETTING_KEYS.flatMap((key) => rowOf(key).alsoReads ?? [])) expect(stdout).toContain(name);
  });
});

const INITIALIZE = `${JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
})}\n`;

describe('a bad value stops the start with one line that names it', () => {
  // Every setting, by variable and by flag: `test/config/any-settings.test.ts`.
  it.each([
    ['CLAUDE_CODE_MCP_TOOLSET', { env: { CLAUDE_CODE_MCP_TOOLSET: 'huge' } }],
    ['--allowed-dirs', { args: ['--allowed-dirs=/no/such/directory'] }],
    ['--deny-options', { args: ['--deny-options=mcpServer'] }],
  ])('%s', async (name, start) => {
    const { code, stdout, stderr } = await runCommand({ ...start, input: INITIALIZE });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^claude-code-mcp: [^\n]+\n$/);
    expect(stderr).toContain(name);
  });

  it('of the second names too', async () => {
    for (const name of SETTING_KEYS.flatMap((key) => rowOf(key).alsoReads ?? [])) {
      if (name.endsWith('PATH')) continue;
      const { code, stderr } = await runCommand({ env: { [name]: 'nonsense' } });
      expect(code).toBe(2);
      expect(stderr).toContain(name);
    }
  });

  it('and an option that is misspelt in DENY_OPTIONS is told with the nearest', async () => {
    const { stderr } = await runCommand({ args: ['--deny-options', 'env,mcpServer'] });
    expect(stderr).toContain('"mcpServer", which is not an option; did you mean mcpServers?');
  });

  it('and so do an unknown flag and an unknown command', async () => {
    expect(await runCommand({ args: ['--max-session', '3'] })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--max-sessions'),
    });
    expect(await runCommand({ args: ['docter'] })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('doctor'),
    });
  });
});

describe('TOOLSET', () => {
  it.each([
    ['by default', {}, 4, 'claude_code'],
    ['as variable', { env: { CLAUDE_CODE_MCP_TOOLSET: 'explicit' } }, 6, 'claude_create_session'],
    ['as flag', { args: ['--toolset', 'explicit'] }, 6, 'claude_create_session'],
  ])('%s decides which tools are offered', async (_when, start, count, name) => {
    const h = await startHarness(start);
    const { tools } = await h.client.listTools();
    expect(tools).toHaveLength(count);
    expect(tools.map((offered) => offered.name)).toContain(name);
  });
});

describe('LOG_LEVEL', () => {
  const misspelt = { CLAUDE_CODE_MCP_MAX_SESSION: '3' };

  it.each([
    ['by default', {}, true],
    ['as variable', { CLAUDE_CODE_MCP_LOG_LEVEL: 'error' }, false],
    ['by its second name', { LOG_LEVEL: 'silent' }, false],
  ])('%s decides whether a warning is written', async (_when, env, written) => {
    const h = await startHarness({ env: { ...misspelt, ...env } });
    // The list of tools is answered before the rest of the server has started; a call is not.
    await h.ok('claude_code_session', { action: 'list' });
    expect(h.server.stderr().includes('CLAUDE_CODE_MCP_MAX_SESSION is not a setting')).toBe(written);
  });

  it('as flag wins over the variable', async () => {
    const h = await startHarness({
      env: { ...misspelt, CLAUDE_CODE_MCP_LOG_LEVEL: 'error' },
      args: ['--log-level', 'warn'],
    });
    await h.ok('claude_code_session', { action: 'list' });
    expect(h.server.stderr()).toContain('claude-code-mcp warn: CLAUDE_CODE_MCP_MAX_SESSION');
  });
});

describe('AUDIT_LOG', () => {
  it('goes into the state directory, where only the owner can read it', async () => {
    const h = await startHarness();
    await h.ok('claude_code_session', { action: 'list' });
    const file = join(h.stateDir, 'claude-code-mcp', 'audit.jsonl');
    await eventually(async () => (await readFile(file, 'utf8')).includes('claude_code_session list'), {
      what: 'the call is in the audit log',
    });
    if (process.platform !== 'win32') expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('goes where the operator says', async () => {
    const h = await startHarness({ args: ['--audit-log', 'deep/down/trail.jsonl'] });
    await h.ok('claude_code_session', { action: 'list' });
    await eventually(() => readFile(join(h.project, 'deep', 'down', 'trail.jsonl'), 'utf8'), {
      what: 'the audit log is written',
    });
  });

  it('can be switched off', async () => {
    const h = await startHarness({ env: { CLAUDE_CODE_MCP_AUDIT_LOG: 'off' } });
    h.model.on('hello').reply(text('hello'));
    await h.ok('claude_code', { prompt: 'hello', waitMs: 40_000 });
    h.server.closeStdin();
    await h.server.exited;
    await expect(stat(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'))).rejects.toThrow('ENOENT');
  });
});
