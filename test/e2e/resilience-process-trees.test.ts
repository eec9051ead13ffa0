import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseProcStat } from '../../src/platform/ancestors.ts';
import { WATCHDOG_NAME } from '../../src/platform/system.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { startRunningCommand } from '../harness/running-command.ts';
import { standIn } from './stand-in.ts';

/** The promised limits. */
const SHUT_DOWN_MS = 5_000;
const WATCHDOG_MS = 10_000;

async function expectAllGone(h: Harness, within: number): Promise<void> {
  await eventually(
    async () => {
      expect(await h.processes()).toEqual([]);
      return true;
    },
    { what: 'every process is gone', within },
  );
}

describe.skipIf(process.platform === 'win32')('no process is left when the server ends', () => {
  // For the end of stdin, see `resilience-every-platform`.
  test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('by %s', async (signal) => {
    const h = await startHarness();
    // Once is enough with the real Claude Code, which does not see how the server was told to end.
    if (signal === 'SIGTERM') await startRunningCommand(h);
    else await startStandIn(h);
    h.server.kill(signal);
    // A second signal changes nothing.
    h.server.kill(signal);
    await expectAllGone(h, SHUT_DOWN_MS);
    expect(await h.server.exited).toEqual({ code: 0, signal: null });
  });

  test('by an uncaught exception', async () => {
    // Simulates a bug in the server: SIGUSR2 throws where nothing catches.
    const hook = `process.on('SIGUSR2', () => { throw new Error('a defect nobody foresaw'); });`;
    const h = await startHarness({
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` },
      tolerate: { stderr: true },
    });
    await startStandIn(h);
    h.server.kill('SIGUSR2');
    await expectAllGone(h, SHUT_DOWN_MS);
    expect(await h.server.exited).toEqual({ code: 1, signal: null });
    expect(h.server.stderr()).toContain('a defect nobody foresaw');
  });

  test('by SIGKILL of watchdog and server: Claude Code ends by itself, the next start ends what is left, and nothing else', async () => {
    const h = await startHarness();
    const other = await startHarness();
    const { cli, command } = await startRunningCommand(h);
    const innocent = await startRunningCommand(other, 'innocent');
    // Stopped first, because a running server replaces a killed watchdog.
    process.kill(h.server.pid, 'SIGSTOP');
    process.kill(watchdogOf(h.server.pid), 'SIGKILL');
    h.server.kill('SIGKILL');
    await h.server.exited;
    // Where the kernel can be asked to, it tells Claude Code that its server is gone; the model is not asked again.
    const asked = h.model.requests.length;
    if (existsSync('/usr/bin/setpriv'))
      await eventually(async () => (await h.processes()).every(({ pid }) => pid !== cli.pid), {
        what: 'Claude Code has ended without watchdog and server',
        within: WATCHDOG_MS,
      });
    expect(h.model.requests.length).toBe(asked);

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

    // SIGKILL of the server alone: the watchdog, even one that replaced another, survives and ends what is running.
    const first = watchdogOf(other.server.pid);
    process.kill(first, 'SIGKILL');
    const next = await eventually(() => watchdogsOf(other.server.pid).find((pid) => pid !== first), {
      what: 'another watchdog is running',
    });
    // Once this is answered, the server has told the watchdog what to guard.
    await other.ok('claude_code_session', { action: 'list' });
    other.server.kill('SIGKILL');
    await expectAllGone(other, WATCHDOG_MS);
    await eventually(() => parentOf(next) === undefined, { what: 'the watchdog is gone too', within: WATCHDOG_MS });
  });
});

// For the end of a session, see `resilience-every-platform`, `reply`, `cancel`, `totals` and `life`.

/** A session of a stand-in whose request is never answered. */
async function startStandIn(h: Harness): Promise<void> {
  await h.waitForRequest((await h.ok('claude_code', { prompt: 'hello', ...standIn('asks') })).sessionId);
}

function watchdogOf(server: number): number {
  const [watchdog] = watchdogsOf(server);
  if (watchdog === undefined) throw new Error(`The server ${server} has no watchdog`);
  return watchdog;
}

/** A watchdog carries no marker, so that nothing mistakes it for a process of a session. */
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
