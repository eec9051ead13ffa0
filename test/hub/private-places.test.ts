/** Where the hub, Claude Code and the system keep private files, no one but the user may have a session. */

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { connectClient } from '../harness/connect-client.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { runCommandIn } from '../harness/run-command.ts';
import { callTool, expectError, expectOk } from '../harness/tool-call.ts';

const shared = shareHarness({ git: true, hub: {} });

async function overHttp(h: Harness, role: 'caller' | 'admin'): Promise<Client> {
  const place = { project: h.project, env: () => h.environment() };
  const { stdout } = await runCommandIn(place, { args: ['token', 'create', role, '--role', role, '--json'] });
  const { token } = JSON.parse(stdout) as { token: string };
  const { url } = readHubRecord(join(h.stateDir, 'claude-code-mcp'))!;
  const headers = { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers } });
  const client = await connectClient(transport, { era: 'modern' });
  onTestFinished(() => client.close());
  return client;
}

/** Everything that is refused, by what it is. */
function closedIn(h: Harness): Record<string, string> {
  const link = (name: string, target: string): string => {
    const file = join(h.project, name);
    symlinkSync(target, file);
    return file;
  };
  const worktree = join(h.stateDir, 'claude-code-mcp/worktrees/someone');
  mkdirSync(worktree, { recursive: true });
  mkdirSync(join(h.configDir, 'projects'), { recursive: true });
  return {
    'the home directory': h.home,
    'the root': '/',
    'the configuration directory': h.configDir,
    transcripts: join(h.configDir, 'projects'),
    'the state directory': join(h.stateDir, 'claude-code-mcp'),
    'a directory above it': h.stateDir,
    'another session’s worktree': worktree,
    'a link to the home directory': link('to-home', h.home),
    'a link to transcripts': link('to-transcripts', join(h.configDir, 'projects')),
    ...(process.platform === 'linux' && {
      '/proc': '/proc',
      'a process': `/proc/${String(process.pid)}`,
      '/sys': '/sys/class',
      '/dev': '/dev',
    }),
  };
}

describe('an HTTP caller', () => {
  it('cannot work in a private place, or above one, however it is named', { timeout: 60_000 }, async () => {
    const h = shared();
    const client = await overHttp(h, 'caller');
    const start = { prompt: 'never', cwd: h.project };
    for (const [what, directory] of Object.entries(closedIn(h))) {
      for (const args of [
        { ...start, cwd: directory },
        { ...start, advanced: { additionalDirectories: [directory] } },
        { ...start, advanced: { projectConfigRoot: directory } },
        { ...start, advanced: { settings: { permissions: { additionalDirectories: [directory] } } } },
        { ...start, cwd: directory, advanced: { workspace: { type: 'worktree' } } },
      ]) {
        const message = expectError('claude_code', await callTool(client, 'claude_code', args), 'PERMISSION_DENIED');
        expect(message, `${what}: ${JSON.stringify(args)}`).toContain('keeps its own files there');
      }
    }
    for (const advanced of [
      { settings: { permissions: { additionalDirectories: ['~/.claude'] } } },
      { settings: { plansDirectory: join(h.configDir, 'plans') } },
      { settings: join(h.configDir, 'settings.json') },
      { debugFile: join(h.stateDir, 'claude-code-mcp', 'debug.log') },
    ])
      expectError('claude_code', await callTool(client, 'claude_code', { ...start, advanced }), 'PERMISSION_DENIED');
  });

  it('is asked before a read-only command reads one by its path', { timeout: 60_000 }, async () => {
    const h = shared();
    writeFileSync(join(h.configDir, 'private.txt'), 'what only the user may read');
    const client = await overHttp(h, 'caller');
    const command = `grep -r only ${h.configDir}/private.txt`;
    h.model.on('read it').reply(tool('Bash', { command, description: 'read' }), text('done'));
    const started = await callTool(client, 'claude_code', { prompt: 'read it', cwd: h.project, waitMs: 40_000 });
    expect(expectOk('claude_code', started)).toMatchObject({ status: 'waiting_permission' });
  });
});

it('the user may work in the home directory, but no one else in a fork of that session', async () => {
  const h = shared();
  h.model.on('at home').reply(text('ok'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'at home', cwd: h.home, waitMs: 40_000 });
  const admin = await overHttp(h, 'admin');
  const fork = { sessionId, prompt: 'never', forkSession: true };
  const message = expectError(
    'claude_code_reply',
    await callTool(admin, 'claude_code_reply', fork),
    'PERMISSION_DENIED',
  );
  expect(message).toContain('keeps its own files there');
  h.model.on('go on').reply(text('continued'));
  const reply = await callTool(admin, 'claude_code_reply', { sessionId, prompt: 'go on', waitMs: 40_000 });
  expect(expectOk('claude_code_reply', reply)).toMatchObject({ result: { result: 'continued' } });
});

it('a client inside a session may work in the worktree of that session', { timeout: 90_000 }, async () => {
  const h = shared();
  h.model.on('nested task').reply(text('done inside'));
  const script = h.model
    .on('outer task')
    .reply(tool('mcp__inner__claude_code', { prompt: 'nested task', waitMs: 30_000 }), text('ok'));
  const { sessionId } = await h.ok('claude_code', {
    prompt: 'outer task',
    allowedTools: ['mcp__inner'],
    mcpServers: { inner: { command: process.execPath, args: [builtServer(), '--hub', 'require'], alwaysLoad: true } },
    strictMcpConfig: true,
    sessionInitTimeoutMs: 30_000,
    advanced: { workspace: { type: 'worktree' } },
  });
  await h.waitUntilRest(sessionId, { within: 60_000 });
  const [answer] = h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults.map((result) => result.text));
  expect(answer).toContain('done inside');
});
