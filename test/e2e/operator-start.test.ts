/** The command line: what it prints, what stops it, and settings given as variables or flags. */

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { flagOf, rowOf, SETTING_KEYS } from '../../src/config/settings-table.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommand } from '../harness/run-command.ts';

describe('the command', () => {
  it('prints its version', async () => {
    expect(await runCommand({ args: ['--version'] })).toEqual({
      code: 0,
      stdout: `${packageJson.version}\n`,
      stderr: '',
    });
  });

  it('lists every setting in its help', async () => {
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

describe('a bad value stops the server from starting, with one line that names it', () => {
  // For every setting, by variable, alias and flag, see `test/config`.
  it.each([
    ['PERMISSION_TIMEOUT_MS', { env: { PERMISSION_TIMEOUT_MS: 'nonsense' } }],
    ['--allowed-dirs', { args: ['--allowed-dirs=/no/such/directory'] }],
    ['"mcpServer", which is not an option; did you mean mcpServers?', { args: ['--deny-options', 'env,mcpServer'] }],
  ])('%s', async (name, start) => {
    const { code, stdout, stderr } = await runCommand({ ...start, input: INITIALIZE });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^claude-code-mcp: [^\n]+\n$/);
    expect(stderr).toContain(name);
  });

  it('an unknown flag or command does so too, with a suggestion', async () => {
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

const toolsOf = async (h: Harness): Promise<string[]> => (await h.client.listTools()).tools.map(({ name }) => name);

describe('TOOLSET, LOG_LEVEL and AUDIT_LOG', () => {
  const misspelt = { CLAUDE_CODE_MCP_MAX_SESSION: '3' };
  const WARNING = 'claude-code-mcp warn: CLAUDE_CODE_MCP_MAX_SESSION is not a setting';

  /** The list of tools is answered before the rest of the server has started; a call is not. */
  const call = (h: Harness): Promise<unknown> => h.ok(...h.dialect.listMachine());

  const audited = (file: string): Promise<string> =>
    eventually(async () => (await readFile(file, 'utf8')).includes('"tool_call"') && file, {
      what: 'the call is in the audit log',
    });

  it('by default: four tools, warnings, and a log in the state directory that only the owner can read', async () => {
    const h = await startHarness({ env: misspelt });
    expect(await toolsOf(h)).toHaveLength(4);
    await call(h);
    expect(h.server.stderr()).toContain(WARNING);
    const file = await audited(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'));
    if (process.platform !== 'win32') expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('as flags: they set the tools, the log level and the audit log, and override the variables', async () => {
    const h = await startHarness({
      env: { ...misspelt, CLAUDE_CODE_MCP_LOG_LEVEL: 'error', CLAUDE_CODE_MCP_AUDIT_LOG: 'off' },
      args: ['--toolset', 'explicit', '--log-level', 'warn', '--audit-log', 'deep/down/trail.jsonl'],
    });
    const tools = await toolsOf(h);
    expect(tools).toHaveLength(6);
    expect(tools).toContain('claude_create_session');
    await h.ok('claude_list_sessions', {});
    expect(h.server.stderr()).toContain(WARNING);
    await audited(join(h.project, 'deep', 'down', 'trail.jsonl'));
  });

  it.each([{ CLAUDE_CODE_MCP_LOG_LEVEL: 'error' }, { LOG_LEVEL: 'silent' }])(
    'as variables (%o): they set the tools, and turn off warnings and the audit log',
    async (env) => {
      const off = { CLAUDE_CODE_MCP_AUDIT_LOG: 'off' };
      const h = await startHarness({ toolset: 'explicit', env: { ...misspelt, ...off, ...env } });
      expect(await toolsOf(h)).toHaveLength(6);
      await call(h);
      h.server.closeStdin();
      await h.server.exited;
      expect(h.server.stderr()).not.toContain('CLAUDE_CODE_MCP_MAX_SESSION');
      await expect(stat(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'))).rejects.toThrow('ENOENT');
    },
  );
});
