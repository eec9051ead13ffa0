/** Clients attached to a hub: what they see, and what outlives them. */

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { runCommand } from '../cli/run-command.ts';
import { startEndless } from '../e2e/endless-command.ts';
import { allowOnce } from '../e2e/forms-support.ts';
import { ERAS } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness } from '../harness/harness.ts';
import { createHome } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { AttachedClient } from './attached-client.ts';

// One hub for all tests: clients come and go.
const VERBOSE = { CLAUDE_CODE_MCP_LOG_LEVEL: 'info' };
const shared = shareHarness({ hub: {}, env: VERBOSE });

const state = (h: Harness, file: string): string => join(h.stateDir, 'claude-code-mcp', file);

/** The parent pids of the Claude Code processes. */
async function parentsOfClaude(h: Harness): Promise<Set<number>> {
  const found = (await h.processes()).filter(({ command }) => command.includes('claude-agent-sdk'));
  const parentOf = (pid: number): number =>
    Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
  return new Set(found.map(({ pid }) => parentOf(pid)));
}

describe('a client', () => {
  it.each(ERAS)(
    'of the %s era runs its sessions in the hub, with forms and progress, in both toolsets',
    async (era) => {
      const h = shared();
      const compact = await AttachedClient.open(h, { era, form: () => allowOnce });
      const made = `made-${era}.txt`;
      h.model.on(`go ${era}`).reply(tool('Bash', { command: `touch ${made}`, description: 'make' }), text('made it'));
      const progress: unknown[] = [];
      const done = await compact.ok(
        'claude_code',
        { prompt: `go ${era}`, waitMs: 45_000 },
        { onProgress: (note) => progress.push(note) },
      );
      expect(done).toMatchObject({ status: 'idle', result: { result: 'made it' } });
      expect(compact.forms).toHaveLength(1);
      expect(progress.length).toBeGreaterThan(0);
      expect(existsSync(join(h.project, made))).toBe(true);
      if (process.platform === 'linux') expect(await parentsOfClaude(h)).toEqual(new Set([h.keeperPid]));

      const explicit = await AttachedClient.open(h, { era, toolset: 'explicit' });
      h.model.on(`again ${era}`).reply(text('and again'));
      await explicit.say(done.sessionId, `again ${era}`);
      expect(await explicit.finish(done.sessionId)).toMatchObject({ answer: 'and again' });
      for (const { server } of [compact, explicit]) expect(server.stderr()).toBe('');
    },
  );

  it('that is killed leaves its session running, and the next one gets the result', async () => {
    const h = shared();
    const first = await AttachedClient.open(h, { era: 'legacy', toolset: 'explicit' });
    const waits = 'until [ -f now ]; do sleep 0.1; done';
    h.model.on('work on').reply(tool('Bash', { command: waits, description: 'wait' }), text('worked on'));
    const sessionId = await first.begin('work on', { allowedTools: ['Bash'] });
    first.server.kill('SIGKILL');
    await first.server.exited;
    const { sessions } = await h.ok('claude_code_session', { action: 'list' });
    expect(sessions).toContainEqual(expect.objectContaining({ sessionId, status: 'running' }));
    writeFileSync(join(h.project, 'now'), '');
    expect(await h.finish(sessionId)).toMatchObject({ answer: 'worked on' });
  });

  it.skipIf(process.platform === 'win32')(
    'whose start fails gets the reason, and no list shows the session afterwards',
    async () => {
      const h = shared();
      const before = (await h.ok('claude_code_session', { action: 'list' })).sessions;
      const broken = join(h.home, 'broken-claude');
      writeFileSync(broken, '#!/bin/sh\necho broken on purpose >&2\nexit 3\n', { mode: 0o755 });
      const advanced = { pathToClaudeCodeExecutable: broken };
      const { isError, text: said } = await h.call('claude_code', { prompt: 'never begun', advanced });
      expect([isError, said]).toEqual([true, expect.stringContaining('broken on purpose')]);
      const after = (await h.ok('claude_code_session', { action: 'list' })).sessions;
      expect(after.map(({ sessionId }: Json) => sessionId)).toEqual(before.map(({ sessionId }: Json) => sessionId));
      await eventually(() => readFileSync(state(h, 'audit.jsonl'), 'utf8').includes('start failed'), {
        what: 'the audit log has it',
      });
    },
  );

  // All reasons are tested in `src/hub/socket/admission.test.ts` and `src/hub/socket/socket-server.test.ts`.
  it('with another configuration or the wrong secret is served without the hub', async () => {
    const h = shared();
    const secret = readFileSync(state(h, 'hub.secret'), 'utf8');
    const openServedClient = async (env: Record<string, string>): Promise<AttachedClient> => {
      const client = await AttachedClient.open(h, { env });
      expect(await client.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
      return client;
    };
    const alone = await openServedClient({ CLAUDE_CODE_MCP_HUB: 'off' });
    expect(alone.server.stderr()).toBe('');
    const stranger = await openServedClient({ CLAUDE_CONFIG_DIR: h.project });
    await eventually(() => stranger.server.stderr().includes('not attached to the hub'), {
      what: 'the client reports that it is not attached',
    });
    expect(stranger.server.stderr()).toContain('CLAUDE_CONFIG_DIR is');
    try {
      writeFileSync(state(h, 'hub.secret'), 'f'.repeat(64));
      const unproven = await openServedClient({});
      expect(unproven.server.stderr()).toContain('does not know the secret of the hub');
    } finally {
      writeFileSync(state(h, 'hub.secret'), secret);
    }
  });

  it('says nothing if there is no hub, and fails if one is required', async () => {
    const home = await createHome();
    onTestFinished(() => home.remove());
    const run = (...args: string[]): ReturnType<typeof runCommand> =>
      runCommand(args, { env: home.env(), cwd: home.project });
    expect(await run()).toEqual({ code: 0, stdout: '', stderr: '' });
    expect(await run('--hub', 'require')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'claude-code-mcp: The hub is required (--hub require): none is running; "claude-code-mcp hub start" starts one.\n',
    });
  });
});

describe('a hub', () => {
  it('that is killed with its keeper leaves no process; its clients attach to the next hub, which answers their calls', async () => {
    const h = shared();
    h.model.on('hello').reply(text('hello again'));
    const older = await AttachedClient.open(h, { era: 'legacy', env: VERBOSE });
    const clients = [h, older];
    const sessionId = await startEndless(h);
    let heard = 0;
    const inFlight = clients.map((client) => {
      const onProgress = (): number => heard++;
      return client.call('claude_code_check', { action: 'wait', sessionId, waitMs: 60_000 }, { onProgress });
    });
    await eventually(() => heard >= 2, { what: 'both calls have reached the hub' });
    await h.killHubAndKeeper();
    if (process.platform === 'linux')
      await eventually(
        async () => (await h.processes()).every(({ pid }) => clients.some(({ server }) => server.pid === pid)),
        { what: 'only the clients are left' },
      );
    expect(existsSync(state(h, 'hub.json'))).toBe(true);

    // A client that starts now finds no hub and is served without one.
    const late = await AttachedClient.open(h);
    expect(await late.ok('claude_code_session', { action: 'list' })).toEqual({ sessions: [] });
    expect(late.server.stderr()).toContain('not attached to the hub: it exited without cleaning up');

    // Attached clients wait for the hub to come back.
    const early = [h.begin('hello'), older.ok('claude_code_session', { action: 'list' })] as const;
    await h.startHub();
    for (const call of inFlight) expect((await call).text).toMatch(/the hub stopped while it worked|UNAVAILABLE/);
    expect(await h.finish(await early[0])).toMatchObject({ answer: 'hello again' });
    expect((await early[1]).sessions).toContainEqual(expect.objectContaining({ sessionId }));
    for (const { server } of clients) expect(server.stderr()).toContain('reattached to the hub');
  });

  it('records its address, readable only by its user, and removes it on exit', async () => {
    const h = shared();
    const record = JSON.parse(readFileSync(state(h, 'hub.json'), 'utf8'));
    expect(record).toMatchObject({ pid: h.hub.pid, version: expect.any(String), socket: expect.any(String) });
    if (process.platform !== 'win32') {
      for (const file of ['hub.json', 'hub.secret']) expect(statSync(state(h, file)).mode & 0o777).toBe(0o600);
      expect(statSync(join(record.socket, '..')).mode & 0o777).toBe(0o700);
    }
    await h.stopHub();
    expect(existsSync(state(h, 'hub.json'))).toBe(false);
    expect(existsSync(record.socket)).toBe(false);
  });
});
