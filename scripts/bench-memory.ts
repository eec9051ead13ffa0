/** Memory of the engine, in its own process so that nothing else is counted. Run by the benchmark with --expose-gc. */

import { setTimeout as sleep } from 'node:timers/promises';
import { ranSession, rest } from './bench/engine-rows.ts';
import { sendPrompt } from '../src/engine/session/delivery.ts';
import { syntheticEngine } from './bench/synthetic-agent.ts';

/** `--check` does the same on a small scale. */
const small = process.argv.includes('--check');
const SESSIONS = small ? 2 : 1_000;
/** A turn of 16 steps has 50 events: init, 16 × 3, result. */
const FIFTY_EVENTS = { steps: 16, partials: 0 };
const TURNS = small ? 10 : 10_000;

const collect = (globalThis as { gc?: () => void }).gc;
if (!collect) throw new Error('needs --expose-gc');

// A real server has loaded these too.
await import('@modelcontextprotocol/server/stdio');
await import('../src/mcp/toolsets.ts');
await import('@anthropic-ai/claude-agent-sdk');

const heap = (): number => {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const manySessions = syntheticEngine(FIFTY_EVENTS, ['--max-sessions', '1000']);
const empty = heap();
const rssAtFirst = process.memoryUsage().rss;
for (let index = 0; index < SESSIONS; index++) await (await ranSession(manySessions)).park();
const full = heap();
const events = manySessions.sessions.reduce((sum, { conversation }) => sum + conversation.log.length, 0);
// Freed pages are returned to the system with a delay.
await sleep(2_000);
collect();
const { rss } = process.memoryUsage();
await manySessions.close();

const oneSession = await ranSession(syntheticEngine({ steps: 3, partials: 0 }));
const turns = async (count: number): Promise<number> => {
  for (let turn = 0; turn < count; turn++) {
    await sendPrompt(oneSession, 'go on');
    await rest(oneSession);
  }
  return heap();
};
const early = await turns(TURNS / 5);
const late = await turns((TURNS * 4) / 5);

console.log(
  JSON.stringify({
    rss,
    rssAtFirst,
    sessions: SESSIONS,
    eventsPerSession: events / SESSIONS,
    bytesPerParkedSession: (full - empty) / SESSIONS,
    heapEarly: early,
    heapLate: late,
    turns: TURNS,
  }),
);
