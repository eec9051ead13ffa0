import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseProcStat } from '../../src/config/proc-stat.ts';
import { WATCHDOG_NAME } from '../../src/driver/process/markers.ts';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { startRunningCommand } from '../harness/running-command.ts';

/** The promises of the product. */
const SHUT_DOWN_MS = 5_000;
const WATCHDOG_MS = 10_000;

async function allGone(h: Harness, within: number): Promise<void> {
  await eventually(
    async () => {
      expect(await h.processes()).toEqual([]);
      return true;
    },
    { what: 'every process is gone', within },
  );
}

describe.skipIf(process.platform === 'win32')('nothing is left when the server ends', () => {
  const endings: [string, number, (h: Harness) => void][] = [
    ['the end of stdin', 0, (h) => h.server.closeStdin()],
    ['SIGINT', 0, (h) => h.server.kill('SIGINT')],
    ['SIGTERM', 0, (h) => h.server.kill('SIGTERM')],
    ['SIGHUP', 0, (h) => h.server.kill('SIGHUP')],
  ];
  test.for(endings)('by %s', async ([, exitCode, end]) => {
    const h = await startHarness();
    await startRunningCommand(h);
    end(h);
    // Idempotent.
    end(h);
    await allGone(h, SHUT_DOWN_MS);
    expect(await h.server.exited).toEqual({ code: exitCode, signal: null });
  });

  test('by an uncaught exception', async () => {
    // A fault of our own code, put in from outside: SIGUSR2 throws where nobody catches.
    const hook = `process.on('SIGUSR2', () => { throw new Error('a defect nobody foresaw'); });`;
    const h = await startHarness({
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` },
      tolerate: { stderr: true },
    });
    await startRunningCommand(h);
    h.server.kill('SIGUSR2');
    await allGone(h, SHUT_DOWN_MS);
    expect(await h.server.exited).toEqual({ code: 1, signal: null });
    expect(h.server.stderr()).toContain('a defect nobody foresaw');
  });

  test('by SIGKILL, which only the watchdog survives', async () => {
    const h = await startHarness();
    await Promise.all([startRunningCommand(h, 'first'), startRunningCommand(h, 'second')]);
    const watchdog = watchdogOf(h.server.pid);
    h.server.kill('SIGKILL');
    await allGone(h, WATCHDOG_MS);
    await eventually(() => parentOf(watchdog) === undefined, {
      what: 'the watchdog has gone too',
      within: WATCHDOG_MS,
    });
  });

  test('by SIGKILL of watchdog and server: the next start ends what is left, and nothing else', async () => {
    const h = await startHarness();
    const { cli, command } = await startRunningCommand(h);
    const other = await startHarness();
    const innocent = await startRunningCommand(other, 'innocent');
    // A watchdog that was killed is replaced, three times in all.
    process.kill(h.server.pid, 'SIGSTOP');
    process.kill(watchdogOf(h.server.pid), 'SIGKILL');
    h.server.kill('SIGKILL');
    await h.server.exited;
    expect((await h.processes()).map(({ pid }) => pid)).toEqual(expect.arrayContaining([cli.pid, command.pid]));

    await h.startServer();
    await eventually(
      async () => {
        const pids = (await h.processes()).map(({ pid }) => pid);
        return !pids.includes(cli.pid) && !pids.includes(command.pid);
      },
      { what: 'the sweep has ended what the dead server left', within: WATCHDOG_MS },
    );
    const untouched = (await other.processes()).map(({ pid }) => pid);
    expect(untouched).toEqual(expect.arrayContaining([innocent.cli.pid, innocent.command.pid]));
  });

  test('a watchdog that was killed is replaced', async () => {
    const h = await startHarness();
    await startRunningCommand(h);
    const first = watchdogOf(h.server.pid);
    process.kill(first, 'SIGKILL');
    await eventually(() => watchdogsOf(h.server.pid).some((pid) => pid !== first), { what: 'another watchdog runs' });
    h.server.kill('SIGKILL');
    await allGone(h, WATCHDOG_MS);
  });
});

// A session that is interrupted, cancelled, parked or forgotten: `interrupt`, `cancel`, `totals`, `life`.
describe.skipIf(process.platform === 'win32')('nothing is left when a session ends', () => {
  test('SIGKILL of Claude Code: its command goes, the session says why, a reply resumes with the history', async () => {
    const h = await startHarness();
    const { sessionId, cli, command } = await startRunningCommand(h, 'endless');
    const bystander = await startRunningCommand(h, 'bystander');
    process.kill(cli.pid, 'SIGKILL');
    const crashed = await h.waitUntilRest(sessionId);
    expect(crashed).toMatchObject({ status: 'error', result: { isError: true, errorSubtype: 'process_exited' } });
    expect(crashed.result.result).toMatch(/exited before it answered \(signal SIGKILL.*\)\. A reply resumes/s);
    const left = (await h.processes()).map(({ pid }) => pid);
    expect(left).not.toContain(command.pid);
    expect(left).toEqual(expect.arrayContaining([bystander.cli.pid, bystander.command.pid]));

    const again = h.model.on('go on after the crash').reply(text('I remember'));
    await h.ok('claude_code_reply', { sessionId, prompt: 'go on after the crash' });
    const resumed = await h.waitUntilRest(sessionId);
    expect(resumed).toMatchObject({ status: 'idle', result: { result: 'I remember' } });
    expect(h.model.requestsFor(again)[0]?.userTexts.join('\n')).toContain('run endless until stopped');
  });

  test('a session that works for too long is stopped with all it runs', async () => {
    const h = await startHarness({
      env: { CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS: '8000', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '100' },
    });
    const { sessionId, cli, command } = await startRunningCommand(h);
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', cancelledSource: 'cleanup' });
    await eventually(async () => (await h.processes()).every(({ pid }) => pid !== cli.pid && pid !== command.pid), {
      what: 'its processes are gone',
      within: SHUT_DOWN_MS,
    });
  });
});

function watchdogOf(server: number): number {
  const [watchdog] = watchdogsOf(server);
  if (watchdog === undefined) throw new Error(`The server ${server} has no watchdog`);
  return watchdog;
}

/** It carries no marker, so that nothing takes it for a process of a session. */
function watchdogsOf(server: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === server && readProc(pid, 'cmdline').includes(WATCHDOG_NAME));
}

function parentOf(pid: number): number | undefined {
  const { isDead, parent } = parseProcStat(readProc(pid, 'stat'));
  return isDead ? undefined : parent;
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
