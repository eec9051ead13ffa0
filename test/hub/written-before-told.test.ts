/** What a hub shows or hands to Claude Code is stored first: real processes, a full disk, a stalled Postgres. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { startTcpProxy } from '../harness/tcp-proxy.ts';
import { expectOk } from '../harness/tool-call.ts';
import { afterThisTest, freshPostgres, withPostgres } from '../store/stores.ts';

const COMMAND = { command: 'echo ran >> runs', description: 'leave a line' };

function script(h: Harness): void {
  h.model.on('leave a line').reply(tool('Bash', COMMAND), text('left it'));
}

function runs(h: Harness): string {
  const file = join(h.project, 'runs');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function decisionsOn(h: Harness, requestId: string): unknown[] {
  return readFileSync(join(h.home, 'audit.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"kind":"decision"') && line.includes(requestId))
    .map((line) => JSON.parse(line))
    .filter(({ outcome }) => outcome !== 'repeated');
}

/** The hub could not store what was decided. It is killed, starts again, and the request is decided once more. */
async function decidedAfterKill(h: Harness, sessionId: string, requestId: string): Promise<void> {
  expect(runs(h)).toBe('');
  const poll = await h.ok('claude_code_check', { action: 'poll', sessionId });
  expect(poll).toMatchObject({ status: 'waiting_permission', actions: [{ requestId }] });
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow', waitMs: 45_000 };
  const done = await h.ok('claude_code_check', answer);
  expect(done).toMatchObject({ status: 'idle', result: { result: 'left it' } });
  expect(runs(h)).toBe('ran\n');
  await eventually(() => decisionsOn(h, requestId).length > 0, { what: 'the decision is in the audit log' });
  expect(decisionsOn(h, requestId)).toMatchObject([{ outcome: 'allow' }]);
}

const canMount = process.platform === 'linux' && process.getuid?.() === 0;

it.skipIf(!canMount)(
  'with a full disk an allowed command does not run, and runs once when there is room again',
  async () => {
    let state = '';
    const unmount = (): void => {
      if (state !== '') execFileSync('umount', ['-l', state]);
      state = '';
    };
    const env = { CLAUDE_CODE_MCP_AUDIT_LOG: '' };
    const h = await startHarness({
      hub: { env },
      prepare: ({ stateDir, home }) => {
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', stateDir]);
        state = stateDir;
        env.CLAUDE_CODE_MCP_AUDIT_LOG = join(home, 'audit.jsonl');
      },
    });
    onTestFinished(unmount);
    script(h);
    const { sessionId, actions } = await h.ok('claude_code', { prompt: 'leave a line', waitMs: 45_000 });
    const [{ requestId }] = actions;
    const filler = join(state, 'filler');
    for (const size of [1 << 20, 4096, 1]) fill(filler, size);
    const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow' };
    for (let tries = 0; tries < 2; tries++)
      expect(await h.fails('claude_code_check', answer, 'UNAVAILABLE')).toMatch(/Nothing was (stored|done)/);
    await h.stopHub('SIGKILL');
    rmSync(filler);
    await h.startHub();
    await decidedAfterKill(h, sessionId, requestId);
    unmount();
  },
);

function fill(file: string, size: number): void {
  const piece = Buffer.alloc(size);
  try {
    for (;;) writeFileSync(file, piece, { flag: 'a' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

it('with a stalled Postgres an allowed command does not run, and runs once after a restart, by the same call', async () => {
  const { url, schema: database } = await freshPostgres();
  await withPostgres(url, (client) => client.query(`CREATE DATABASE ${database}`));
  afterThisTest(() => withPostgres(url, (client) => client.query(`DROP DATABASE ${database} WITH (FORCE)`)));
  const target = new URL(url);
  target.pathname = `/${database}`;
  const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) });
  onTestFinished(() => proxy.close());
  target.port = String(proxy.port);
  const env = { CLAUDE_CODE_MCP_AUDIT_LOG: '' };
  const h = await startHarness({
    hub: { env, args: ['--store', target.href] },
    prepare: ({ home }) => {
      env.CLAUDE_CODE_MCP_AUDIT_LOG = join(home, 'audit.jsonl');
    },
  });
  script(h);
  const { sessionId, actions } = await h.ok('claude_code', { prompt: 'leave a line', waitMs: 45_000 });
  const [{ requestId }] = actions;
  proxy.set('silent');
  const answered = h.call('claude_code_check', {
    action: 'respond_permission',
    sessionId,
    requestId,
    decision: 'allow',
  });
  // The decision is made before this second answer is looked at.
  await h.call('claude_code_check', { action: 'poll', sessionId, waitMs: 0 });
  await h.stopHub('SIGKILL');
  expect(runs(h)).toBe('');
  proxy.set('open');
  await h.startHub();
  expectOk('claude_code_check', await answered);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'left it' } });
  expect(runs(h)).toBe('ran\n');
  await eventually(() => decisionsOn(h, requestId).length > 0, { what: 'the decision is in the audit log' });
  expect(decisionsOn(h, requestId)).toMatchObject([{ outcome: 'allow' }]);
});

it('a form is known to the hub that starts after the one that showed it was killed', async () => {
  let shown: () => void = () => undefined;
  const h = await startHarness({
    hub: {},
    era: 'legacy',
    form: (_request, withdrawn) => {
      // It is shown again by the next hub.
      if (h.forms.length === 1) h.hub.kill('SIGKILL');
      shown();
      return new Promise((resolve) => withdrawn.addEventListener('abort', () => resolve({ action: 'cancel' })));
    },
  });
  script(h);
  const arrived = new Promise<void>((resolve) => (shown = resolve));
  const { sessionId } = await h.ok('claude_code', { prompt: 'leave a line' });
  await arrived;
  await h.hub.exited;
  await h.startHub();
  const poll = await h.ok('claude_code_check', { action: 'poll', sessionId });
  expect(poll).toMatchObject({ status: 'waiting_permission', actions: [{ toolName: 'Bash', input: COMMAND }] });
});
