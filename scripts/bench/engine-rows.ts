/** The engine alone, in this process, with synthetic agents. */

import type { Engine } from '../../src/engine/engine.ts';
import { sendPrompt } from '../../src/engine/session/delivery.ts';
import type { Session } from '../../src/engine/session/session.ts';
import { viewOptions } from '../../src/mcp/tools/compact/view-options.ts';
import { checkView } from '../../src/views/check-view.ts';
import { toResult } from '../../src/mcp/call-tool.ts';
import { median, round } from './measure.ts';
import type { Row } from './row.ts';
import { messagesIn, syntheticEngine } from './synthetic-agent.ts';

const FULL_LOG_STEPS = 400;
const POLLS = 200;

export async function pollRow(): Promise<Row> {
  const session = await ranSession(syntheticEngine({ steps: FULL_LOG_STEPS, partials: 0 }));
  const poll = (cursor?: number): void => {
    toResult(checkView({ ...session.read(), isLeftToPerson: () => false }, viewOptions('poll', { cursor })));
  };
  const whole = timesOf(() => poll());
  const tail = timesOf(() => poll(session.conversation.log.nextId - 10));
  return {
    what: `poll of a full event log (${session.conversation.log.length} events), minimal`,
    target: 'under 5 ms, growing with what is returned',
    measured: `${median(whole).toFixed(2)} ms from the oldest on, ${median(tail).toFixed(3)} ms for the last 10`,
    reached: median(whole) < 5 && median(tail) < median(whole) / 5,
    numbers: {
      ms: round(median(whole), 3),
      lastTenMs: round(median(tail), 4),
      events: session.conversation.log.length,
    },
  };
}

export async function throughputRow(): Promise<Row> {
  const shape = { steps: 100, partials: 40 };
  const engine = syntheticEngine(shape);
  const session = await ranSession(engine);
  const turns = 20;
  const begin = process.cpuUsage();
  for (let turn = 0; turn < turns; turn++) {
    await sendPrompt(session, 'go on');
    await rest(session);
  }
  const { user, system } = process.cpuUsage(begin);
  const perSecond = (turns * messagesIn(shape)) / ((user + system) / 1e6);
  return {
    what: 'events through the engine, partial messages included',
    target: 'over 20,000 a second on one core',
    measured: `${round(perSecond).toLocaleString('en-US')} a second of processor time`,
    reached: perSecond > 20_000,
    numbers: { perSecond: round(perSecond) },
  };
}

export async function ranSession(engine: Engine): Promise<Session> {
  const session = await engine.start({ prompt: 'go', options: { includePartialMessages: true } });
  await rest(session);
  return session;
}

export function rest(session: Session): Promise<void> {
  return new Promise((resolve) => {
    if (session.atRest) {
      resolve();
      return;
    }
    const unsubscribe = session.notices.subscribe(() => {
      if (!session.atRest) return;
      unsubscribe();
      resolve();
    });
  });
}

function timesOf(work: () => void): number[] {
  for (let warm = 0; warm < POLLS; warm++) work();
  return Array.from({ length: POLLS }, () => {
    const begin = performance.now();
    work();
    return performance.now() - begin;
  });
}
