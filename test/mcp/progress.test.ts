import { describe, expect, test, vi } from 'vitest';
import type { AgentListener, AgentProcess } from '../../src/driver/agent-process.ts';
import { LOCAL } from '../../src/engine/rules/access.ts';
import type { Rules } from '../../src/engine/rules/rules.ts';
import { Gate } from '../../src/engine/gate.ts';
import { activityLine } from '../../src/engine/session/session-record.ts';
import { sendPrompt } from '../../src/engine/session/delivery.ts';
import { Session } from '../../src/engine/session/session.ts';
import { reportProgress } from '../../src/mcp/wait.ts';
import { viewOptions } from '../../src/mcp/tools/compact/view-options.ts';
import { checkView } from '../../src/views/check-view.ts';
import { heardAs, STARTED, type Said } from '../harness/agent-messages.ts';
import { ManualClock } from '../harness/manual-clock.ts';

interface WorkingSession {
  clock: ManualClock;
  session: Session;
  say(said: Said): void;
}

/** A running session whose Claude Code is scripted by the test. */
async function workingSession(): Promise<WorkingSession> {
  const clock = new ManualClock();
  let listener: AgentListener | undefined;
  const process = { send: () => undefined, alive: true } as unknown as AgentProcess;
  const session = new Session(
    {
      id: 'a',
      owner: LOCAL,
      rules: { settings: {}, ownVariables: [], policy: { directories: {} } } as unknown as Rules,
      options: {},
      origin: { kind: 'new' },
      permissionTimeoutMs: 0,
      initTimeoutMs: 1_000,
    },
    {
      clock,
      eventLimits: { maxEvents: 10, maxBytes: 1_000 },
      launch: async (_launch, to) => {
        listener = to;
        return process;
      },
      gate: new Gate(),
      recordedCostUsd: async () => 0,
      lockTranscript: async () => ({ release: async () => undefined }),
      salvageTranscript: async () => true,
      isInTranscript: async () => true,
      isWritten: async () => true,
      onOpened: () => undefined,
      onRequest: () => undefined,
      onSettled: () => undefined,
      onRuledOut: () => undefined,
      onRest: () => undefined,
      onTools: () => undefined,
      debug: () => undefined,
    },
  );
  const say = (said: Said): void => listener?.onMessage(heardAs(said));
  const started = sendPrompt(session, 'work');
  await vi.waitUntil(() => listener !== undefined, { interval: 1, timeout: 30_000 });
  say(STARTED);
  await started;
  return { clock, session, say };
}

function progressOf({ clock, session }: WorkingSession): { lines: string[]; stop: () => void } {
  const lines: string[] = [];
  const engine = {
    clock,
    stored: () => undefined,
    activity: () => activityLine(session),
    watch: (_id: string, listener: () => void) => session.notices.subscribe(listener),
  };
  const stop = reportProgress(engine, [session.id], (line) => void lines.push(line));
  return { lines, stop };
}

describe('progress', () => {
  test('is sent at least every five seconds, and stops with the call', async () => {
    const running = await workingSession();
    const { lines, stop } = progressOf(running);
    for (let seconds = 5; seconds <= 60; seconds += 5) {
      const before = lines.length;
      running.clock.advance(5_000);
      expect(lines.length).toBeGreaterThan(before);
    }
    stop();
    expect(running.clock.alarms).toBe(0);
  });

  test('reports a retry within two seconds, even right after another message', async () => {
    const running = await workingSession();
    const { lines } = progressOf(running);
    running.clock.advance(10);
    running.say({ kind: 'retry', summary: 'attempt 1 of 10', loginRefused: false });
    running.clock.advance(1_000);
    expect(lines.at(-1)).toContain('attempt 1 of 10');
  });

  test('condenses a flood of changes into few lines, ending with the latest', async () => {
    const running = await workingSession();
    const { lines } = progressOf(running);
    for (let count = 1; count <= 1_000; count++) {
      running.say({ kind: 'retry', summary: `attempt ${count}`, loginRefused: false });
      running.clock.advance(1);
    }
    running.clock.advance(500);
    expect(lines.length).toBeLessThan(6);
    expect(lines.at(-1)).toContain('attempt 1000');
  });
});

test('a long silence shows in quietMs, activity and progress, and ends with the next message', async () => {
  const running = await workingSession();
  const { clock, session } = running;
  const { lines } = progressOf(running);
  const view = (): Record<string, unknown> =>
    checkView({ ...session.read(), isLeftToPerson: () => false }, viewOptions('wait', {}));
  clock.advance(29_000);
  expect(view()).not.toHaveProperty('quietMs');
  clock.advance(31_000);
  expect(view()).toMatchObject({
    status: 'running',
    quietMs: 60_000,
    activity: expect.stringMatching(/^quiet for 60 s, /),
  });
  expect(lines.at(-1)).toMatch(/^quiet for \d\d s, /);
  running.say({ kind: 'notice', name: 'tool_progress' });
  expect(view()).not.toHaveProperty('quietMs');
});
