/** A hub in its own process, with synthetic agents, so that nothing else is counted. Run by the benchmark with --expose-gc. */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Engine } from '../src/engine/engine.ts';
import { eventLimits } from '../src/engine/conversation/event-log.ts';
import { sendPrompt } from '../src/engine/session/delivery.ts';
import { serveHubHttp, stateKeyIn } from '../src/hub/http-part.ts';
import { Journal } from '../src/hub/journal.ts';
import { HubMetrics } from '../src/hub/metrics/hub-metrics.ts';
import { openPusher } from '../src/hub/notify/pusher.ts';
import { Once } from '../src/hub/once.ts';
import { SignInCodes } from '../src/hub/auth/sign-in.ts';
import { Tokens } from '../src/hub/auth/tokens.ts';
import { openSqliteStore } from '../src/store/sqlite/open.ts';
import type { HubQuestion, HubReport } from './bench/load-rows.ts';
import { ranSession, rest } from './bench/engine-rows.ts';
import { syntheticEngine } from './bench/synthetic-agent.ts';

/** `--check` does the same on a small scale, without a parent process. */
const small = process.argv.includes('--check');
const SESSIONS = small ? 2 : 1_000;
const FIFTY_EVENTS = { steps: 16, partials: 0 };
/** The store's directory, and whether this is the first run, which creates the sessions that the second one recalls. */
const [given, isFirstRun] = [process.argv[2], process.argv[3] === 'before'];

const collect = (globalThis as { gc?: () => void }).gc;
if (!collect) throw new Error('needs --expose-gc');
// A real hub has loaded this too.
await import('@anthropic-ai/claude-agent-sdk');

const directory = small ? await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-bench-hub-')) : (given ?? '');
const file = path.join(directory, 'hub.db');
const bounds = eventLimits({ eventBufferSize: 1_000 });
const store = await openSqliteStore({ file, bounds, warn: console.error });
const { hub, fence } = await store.acquireLease('local', 3_600_000, {});
const journal = new Journal({
  store,
  by: { hub, fence },
  now: Date.now,
  log: (_level, line) => console.error(line),
  onFenced: () => undefined,
});
const engine: Engine = syntheticEngine(FIFTY_EVENTS, ['--max-sessions', '50', '--audit-log', 'off'], {
  archive: journal,
});
journal.follow(engine);
if (isFirstRun || small) {
  for (let index = 0; index < SESSIONS; index++) await (await ranSession(engine)).park();
  await engine.stored();
}
if (isFirstRun) {
  await engine.close();
  await journal.close(1_000);
  await store.close();
  process.exit(0);
}
const ids: string[] = [];
for (let after: string | undefined; ids.length < SESSIONS;) {
  const page = await store.sessions({ limit: 200, ...(after !== undefined && { after }) });
  ids.push(...page.items.map(({ id }) => id));
  after = page.next;
}

const version = '0.0.0-bench';
const server = await serveHubHttp({
  engine,
  once: new Once({ store, hub: { hub, fence }, now: Date.now }),
  store,
  hub: { hub, fence },
  settings: { ...engine.settings, listen: { host: '127.0.0.1', port: 0 } },
  identity: { name: 'claude-code-mcp', version },
  codes: new SignInCodes(),
  dashboardDir: directory,
  stateKey: await stateKeyIn(store),
  metrics: new HubMetrics({ engine, store, version }),
  push: await openPusher(engine.settings, store, { clock: engine.clock, audit: engine.audit, warn: console.error }),
  log: () => undefined,
});
const { token } = await new Tokens(store).create({ name: 'bench', role: 'admin', attended: false });

let highest = 0;
const sampleMemory = (): void => {
  highest = Math.max(highest, process.memoryUsage().rss);
};
const watching = setInterval(sampleMemory, 50);

/** Runs a turn of fifty events in this many sessions at once. */
async function work(count: number): Promise<void> {
  await Promise.all(
    ids.slice(0, count).map(async (id) => {
      const session = await engine.finder.recall(id);
      if (!session) return;
      await sendPrompt(session, 'go on');
      await rest(session);
    }),
  );
  await engine.stored();
}

const report = (): HubReport => ({ rss: process.memoryUsage().rss, highest, sessions: ids.length });

async function end(): Promise<void> {
  clearInterval(watching);
  await server.close();
  await engine.close();
  await journal.close(1_000);
  await store.close();
  if (small) await rm(directory, { recursive: true, force: true });
}

if (small) {
  await work(SESSIONS);
  console.log(JSON.stringify(report()));
  await end();
} else {
  process.on('message', (question: HubQuestion) => {
    void (async () => {
      if (question.kind === 'work') await work(question.sessions);
      if (question.kind === 'collect') collect();
      sampleMemory();
      process.send?.(report());
      if (question.kind === 'end') {
        await end();
        process.disconnect();
      }
    })();
  });
  process.send?.({ url: server.url, token, ids });
}
