import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, type TestContext } from 'vitest';
import { WATCHDOG_NAME } from '../../src/platform/system.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { groupsDirectory, groupsOf } from '../harness/cgroups.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';

/** The promised limit, for a server that was killed. */
const WATCHDOG_MS = 10_000;

let escapes = 0;

interface Escape {
  readonly h: Harness;
  readonly sessionId: string;
  readonly ownerId: string;
  /** Whether the process and every cgroup are gone. */
  gone(): boolean;
}

/** A session whose command left a process behind that shares no parent, session, group or environment with it. */
async function startEscape(context: TestContext, options: HarnessOptions = {}): Promise<Escape> {
  groupsDirectory(context);
  const h = await startHarness(options);
  if (options.env?.['CLAUDE_CODE_MCP_PREWARM'] !== undefined) {
    await eventually(() => h.server.stderr().includes('spare is warm'), { what: 'the spare is warm', within: 25_000 });
  }
  const command = `sleep 3${String(process.pid).padStart(7, '0')}.${String((escapes += 1))}`;
  const escaped = (): { pid: number; args: string }[] => processes().filter(({ args }) => args === command);
  onTestFinished(() => {
    for (const { pid } of escaped()) process.kill(pid, 'SIGKILL');
  });
  h.model
    .on('leave something behind')
    .reply(tool('Bash', { command: `(env -i setsid ${command} &); echo left`, description: 'leave it' }), text('left'));
  const { sessionId } = await h.ok('claude_code', { prompt: 'leave something behind', cwd: h.project });
  await h.allow(sessionId);
  await h.waitUntilRest(sessionId);
  // The shell does not wait until what it left behind has become that command.
  await eventually(() => escaped().length === 1, { what: 'the detached process runs' });
  const [record] = readdirSync(join(h.stateDir, 'claude-code-mcp', 'owners'));
  const ownerId = record!.replace('.json', '');
  return { h, sessionId, ownerId, gone: () => escaped().length === 0 && groupsOf(ownerId).length === 0 };
}

function processes(): { pid: number; args: string }[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => ({ pid: Number.parseInt(line, 10), args: line.trim().replace(/^\d+\s+/, '') }));
}

test('a process detached from its parent, session, group and environment ends when the session is cancelled', async (context) => {
  const { h, sessionId, gone } = await startEscape(context);
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
  await eventually(gone, { what: 'the detached process is gone' });
});

test('a fully detached process ends when the server is told to exit, even if the session came from a spare process', async (context) => {
  const env = { CLAUDE_CODE_MCP_PREWARM: '1', CLAUDE_CODE_MCP_LOG_LEVEL: 'debug' };
  const { h, gone } = await startEscape(context, { env });
  expect(h.server.stderr()).toContain('spare claimed');
  h.server.kill('SIGTERM');
  await h.server.exited;
  expect(gone()).toBe(true);
});

test('a fully detached process is gone after SIGKILL of the server', async (context) => {
  const { h, gone } = await startEscape(context);
  h.server.kill('SIGKILL');
  await eventually(gone, { what: 'the detached process is gone', within: WATCHDOG_MS });
});

test('a fully detached process is ended by the next server after SIGKILL of watchdog and server', async (context) => {
  const { h, gone } = await startEscape(context);
  // Stopped first, because a running server replaces a killed watchdog.
  process.kill(h.server.pid, 'SIGSTOP');
  for (const { pid, args } of processes()) {
    if (args.includes(WATCHDOG_NAME) && parentOf(pid) === h.server.pid) process.kill(pid, 'SIGKILL');
  }
  h.server.kill('SIGKILL');
  await h.server.exited;
  expect(gone()).toBe(false);
  await h.startServer();
  await eventually(gone, { what: 'the detached process is gone', within: WATCHDOG_MS });
});

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1]);
}
