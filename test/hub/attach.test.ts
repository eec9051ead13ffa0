/** Clients that are passed through to a hub: what they see, and what outlives them. */

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startEndless } from '../e2e/endless-command.ts';
import { allowOnce } from '../e2e/forms-support.ts';
import { ERAS } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { expectError } from '../harness/tool-call.ts';

const state = (h: Harness, file: string): string => join(h.stateDir, 'claude-code-mcp', file);
const hubPid = (h: Harness): number => JSON.parse(readFileSync(state(h, 'hub.json'), 'utf8')).pid;

/** Claude Code processes, and whose they are. */
async function parentsOfClaude(h: Harness): Promise<number[]> {
  const found = (await h.processes()).filter(({ command }) => command.includes('claude-agent-sdk'));
  return found.map(({ pid }) => Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]));
}

describe.each(ERAS)('a %s client', (era) => {
  it('has its session in the hub with the toolset explicit', async () => {
    const h = await startHarness({ era, toolset: 'explicit', hub: {} });
    h.model.on('hello').reply(text('hello from the hub'));
    h.model.on('again').reply(text('and again'));
    const sessionId = await h.begin('hello');
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'hello from the hub' });
    await h.say(sessionId, 'again');
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'and again' });
    if (process.platform === 'linux') expect(await parentsOfClaude(h)).toEqual([hubPid(h)]);
    expect(h.server.stderr()).toBe('');
  });

  it('gets forms and progress through the hub with the toolset compact', async () => {
    const h = await startHarness({ era, hub: {}, form: () => allowOnce });
    h.model.on('go').reply(tool('Bash', { command: 'touch made.txt', description: 'make a file' }), text('made it'));
    const progress: unknown[] = [];
    const done = await h.ok(
      'claude_code',
      { prompt: 'go', waitMs: 45_000 },
      { onProgress: (note) => progress.push(note) },
    );
    expect(done).toMatchObject({ status: 'idle', result: { result: 'made it' } });
    expect(h.forms).toHaveLength(1);
    expect(progress.length).toBeGreaterThan(0);
    expect(existsSync(join(h.project, 'made.txt'))).toBe(true);
    if (process.platform === 'linux') expect(await parentsOfClaude(h)).toEqual([hubPid(h)]);
  });
});

describe('a client', () => {
  it('that is killed leaves its session at work, and the next one gets the result', async () => {
    const h = await startHarness({ hub: {} });
    const waits = 'until [ -f now ]; do sleep 0.1; done';
    h.model.on('go').reply(tool('Bash', { command: waits, description: 'wait' }), text('made it'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'go', allowedTools: ['Bash'] });
    h.server.kill('SIGKILL');
    await h.server.exited;
    await h.startServer();
    const { sessions } = await h.ok('claude_code_session', { action: 'list' });
    expect(sessions).toMatchObject([{ sessionId, status: 'running' }]);
    writeFileSync(join(h.project, 'now'), '');
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'made it' } });
  });
});

describe('a hub', () => {
  it('is the only one of its state directory, writes where it is, for its user only, and takes it back', async () => {
    const h = await startHarness({ hub: {} });
    const first = h.hub;
    await expect(h.startHub()).rejects.toThrow(`a hub is already running (pid ${hubPid(h)})`);
    const record = JSON.parse(readFileSync(state(h, 'hub.json'), 'utf8'));
    expect(record).toMatchObject({ pid: first.pid, version: expect.any(String), socket: expect.any(String) });
    if (process.platform !== 'win32') {
      for (const file of ['hub.json', 'hub.secret']) expect(statSync(state(h, file)).mode & 0o777).toBe(0o600);
      expect(statSync(join(record.socket, '..')).mode & 0o777).toBe(0o700);
    }
    first.kill();
    await first.exited;
    expect(existsSync(state(h, 'hub.json'))).toBe(false);
    expect(existsSync(record.socket)).toBe(false);
  });

  it.runIf(process.platform === 'linux')(
    'that is killed leaves no process, and the next start is as usual',
    async () => {
      const h = await startHarness({ hub: {} });
      await startEndless(h);
      await h.stopHub('SIGKILL');
      await eventually(async () => (await h.processes()).every(({ pid }) => pid === h.server.pid), {
        what: 'only the client is left',
      });
      expect(existsSync(state(h, 'hub.json'))).toBe(true);
      // A client that comes now finds nobody, and is served all the same.
      await h.startServer();
      expect(await h.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
      expect(h.server.stderr()).toContain('not attached to the hub: it exited without cleaning up');
      await h.startHub();
      await h.startServer();
      expect(await h.ok('claude_code_session', { action: 'list' })).toBeDefined();
      expect(h.server.stderr()).toBe('');
    },
  );
});

describe('a hub that is restarted', () => {
  it.each(ERAS)('is found again by its %s clients; a call under way says where to look', async (era) => {
    const h = await startHarness({ era, hub: {}, env: { CLAUDE_CODE_MCP_LOG_LEVEL: 'info' } });
    h.model.on('hello').reply(text('hello again'));
    const sessionId = await startEndless(h);
    const underWay = h.call('claude_code_check', { action: 'wait', sessionId, waitMs: 60_000 });
    await h.stopHub('SIGKILL');
    expect(expectError('claude_code_check', await underWay, 'UNAVAILABLE')).toContain('claude_code_session');
    // Waits for the hub to come back.
    const early = h.begin('hello');
    await h.startHub();
    expect(await h.finish(await early)).toMatchObject({ answer: 'hello again' });
    expect(h.server.stderr()).toContain('reattached to the hub');
  });
});

describe('attaching', () => {
  it('is silent where there is no hub, and fails where one is required', async () => {
    const alone = await startHarness();
    expect(await alone.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
    expect(alone.server.stderr()).toBe('');
    const required = await startHarness({ args: ['--hub', 'require'], connect: false });
    expect(await required.server.exited).toEqual({ code: 2, signal: null });
    await required.server.drained;
    expect(required.server.stderr()).toBe(
      'claude-code-mcp: The hub is required (--hub require): none is running; "claude-code-mcp hub start" starts one.\n',
    );
  });

  it('is refused to a client that does not belong there, which is served without the hub', async () => {
    const h = await startHarness({ hub: { env: { CLAUDE_CODE_MCP_APPROVALS: 'human' } } });
    const elsewhere = { HOME: h.project, CLAUDE_CODE_MCP_STATE_DIR: state(h, '') };
    for (const [env, why] of [
      [elsewhere, 'HOME is'],
      [{ CLAUDE_CONFIG_DIR: h.project }, 'CLAUDE_CONFIG_DIR is'],
      [{ CLAUDE_CODE_MCP_APPROVALS: 'caller' }, 'no one would be allowed to decide'],
    ] as const) {
      await h.startServer({ env });
      await h.ok('claude_code_session', { action: 'list' });
      await eventually(() => h.server.stderr().includes('not attached to the hub'), {
        what: 'why it was not attached',
      });
      expect(h.server.stderr()).toContain(why);
    }
    await h.startServer({ env: { CLAUDE_CODE_MCP_HUB: 'off' } });
    await h.ok('claude_code_session', { action: 'list' });
    expect(h.server.stderr()).toBe('');
  });

  it('is refused by whoever does not know the secret', async () => {
    const h = await startHarness({ hub: {} });
    writeFileSync(state(h, 'hub.secret'), 'f'.repeat(64));
    await h.restartServer();
    await h.ok('claude_code_session', { action: 'list' });
    expect(h.server.stderr()).toContain('does not know the secret of the hub');
  });
});
