import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseProcStat } from '../../src/config/proc-stat.ts';
import { WATCHDOG_NAME } from '../../src/driver/process/markers.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { startRunningCommand } from '../harness/running-command.ts';
import { standIn } from './stand-in.ts';

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
  // The end of stdin: `resilience-every-platform`.
  test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('by %s', async (signal) => {
    const h = await startHarness();
    // What Claude Code itself does does not depend on how its server was told to end.
    if (signal === 'SIGTERM') await startRunningCommand(h);
    else await startStandIn(h);
    h.server.kill(signal);
    // Idempotent.
    h.server.kill(signal);
    await allGone(h, SHUT_DOWN_MS);
    expect(await h.server.exited).toEqual({ code: 0, signal: null });
  });

  test('by an uncaught exception', async () => {
    // A fault of our own code, put in from outside: SIGUSR2 throws where nobody catches.
    const hook = `process.on('SIGUSR2', () => { throw new Error('a defect nobody foresaw'); });`;
    const h = await startHarness({
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` },
      tolerate: { stderr: true },
    });
    await startStandIn(h);
    h.server.kill('SIGUSR2');
    await allGone(h, SHUT_DOWN_MS);
    expect(await h.server.exited).toEqual({ code: 1, signal: null });
    expect(h.server.stderr()).toContain('a defect nobody foresaw');
  });

  test('by SIGKILL of watchdog and server: the next start ends what is left, and nothing else', async () => {
    const h = await startHarness();
    const other = await startHarness();
    const { cli, command } = await startRunningCommand(h);
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

    // SIGKILL of the server alone: the watchdog survives it, also one that replaced another, and ends what runs.
    const first = watchdogOf(other.server.pid);
    process.kill(first, 'SIGKILL');
    const next = await eventually(() => watchdogsOf(other.server.pid).find((pid) => pid !== first), {
      what: 'another watchdog runs',
    });
    // An answer says that the server has told it whom it guards.
    await other.ok('claude_code_session', { action: 'list' });
    other.server.kill('SIGKILL');
    await allGone(other, WATCHDOG_MS);
    await eventually(() => parentOf(next) === undefined, { what: 'the watchdog has gone too', within: WATCHDOG_MS });
  });
});

// When a session ends: `resilience-every-platform`, `reply`, `cancel`, `totals`, `life`.

/** A session of a stand-in that works forever. */
async function startStandIn(h: Harness): Promise<void> {
  await h.waitForRequest((await h.ok('claude_code', { prompt: 'hello', ...standIn('asks') })).sessionId);
}

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
