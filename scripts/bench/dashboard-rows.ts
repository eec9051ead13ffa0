/** The page in a real browser, over the hub's own HTTP server and API: from the address to the content. */

import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { apiRoutes } from '../../src/hub/api/routes.ts';
import { serveHttp, type HttpServer } from '../../src/hub/http/serve-http.ts';
import { SignInCodes } from '../../src/hub/auth/sign-in.ts';
import { Once } from '../../src/hub/once.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';
import type { Change, HubRef, StoredSession } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open-store.ts';
import { openBrowser, openPage } from '../../test/browser/browser.ts';
import { builtServer } from '../../test/harness/built-server.ts';
import { median, round, timed } from './measure.ts';
import type { Row } from './row.ts';

const SESSIONS = 1_000;
const EVENTS = 10_000;
const EVENTS_PER_WRITE = 500;
const LONG = 'session-00000';
const INBOX_MS = 1_000;
const SESSION_MS = 1_500;
const BACK = 4_400;
const TASK_MS = 100;

export async function dashboardRows(rounds: number): Promise<Row[]> {
  const stateDir = await mkdtemp(path.join(os.tmpdir(), 'claude-code-mcp-bench-dashboard-'));
  const browser = await openBrowser();
  const bounds = { maxEvents: 2 * EVENTS, maxBytes: 2 ** 30 };
  try {
    return await rowsOver(await openStore({ url: undefined, stateDir, warn: console.error, bounds }), rounds, browser);
  } finally {
    await browser.close();
    await rm(stateDir, { recursive: true, force: true });
  }
}

async function rowsOver(store: Store, rounds: number, browser: Browser): Promise<Row[]> {
  const codes = new SignInCodes();
  let http: HttpServer | undefined;
  const { page, context } = await openPage(browser);
  try {
    await fill(store);
    http = await serve(store, codes);
    const address = http.url.replace(/\/?$/, '/');
    await page.goto(`${address}#code=${codes.issue()}`);
    await page.getByRole('status').getByText('Connected').waitFor();
    const inbox = await measure(rounds, page, `${address}#/`, (shown) =>
      shown.getByRole('button', { name: 'Allow', exact: true }).first().waitFor(),
    );
    const session = await measure(rounds, page, `${address}#/sessions/${LONG}`, (shown) =>
      shown.getByText(`Event number ${EVENTS}`).waitFor(),
    );
    const longest = await scrollBack(page);
    return [
      row(`first item of the inbox, with ${SESSIONS.toLocaleString('en-US')} sessions`, INBOX_MS, inbox),
      row(`end of a session with ${EVENTS.toLocaleString('en-US')} events`, SESSION_MS, session),
      row(`longest task while scrolling back through ${BACK.toLocaleString('en-US')} events`, TASK_MS, longest),
    ];
  } finally {
    await context.close();
    await http?.close();
    await store.close();
  }
}

/** Reloads the page each time, and measures from the address to the text. */
async function measure(
  rounds: number,
  page: Page,
  address: string,
  shown: (page: Page) => Promise<void>,
): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < rounds; n++) {
    await page.goto('about:blank');
    times.push(
      await timed(async () => {
        await page.goto(address, { waitUntil: 'commit' });
        await shown(page);
      }),
    );
  }
  return median(times);
}

/** From the end of the session that is shown, a screen at a time. Returns how long the page was blocked at most. */
async function scrollBack(page: Page): Promise<number> {
  return page.evaluate<number>(`(async () => {
    const tasks = [];
    const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)));
    observer.observe({ type: 'longtask' });
    const timeline = document.querySelector('.timeline');
    const earliest = () => Math.min(...[...timeline.querySelectorAll('.row.text')]
      .map((row) => Number(/Event number (\\d+)/.exec(row.textContent)?.[1] ?? Infinity)));
    const frame = () => new Promise(requestAnimationFrame);
    for (let frames = 0; earliest() > ${EVENTS - BACK}; frames++) {
      if (frames > ${BACK}) throw new Error('stuck at event ' + earliest());
      timeline.scrollBy({ top: -0.9 * timeline.clientHeight });
      await frame();
    }
    await new Promise((done) => setTimeout(done, 100));
    tasks.push(...observer.takeRecords().map(({ duration }) => duration));
    return Math.max(0, ...tasks);
  })()`);
}

function row(what: string, targetMs: number, measuredMs: number): Row {
  return {
    what: `dashboard: ${what}`,
    target: `at most ${targetMs} ms`,
    measured: `${Math.round(measuredMs)} ms`,
    reached: measuredMs <= targetMs,
    numbers: { ms: round(measuredMs) },
  };
}

function serve(store: Store, codes: SignInCodes): Promise<HttpServer> {
  const hub: HubRef = { hub: 'bench', fence: 1 };
  const settings = { listen: { host: '127.0.0.1', port: 0 }, approvals: 'auto', auditLog: 'off' } as never;
  const unused = (): never => {
    throw new Error('the benchmark only reads');
  };
  return serveHttp({
    settings,
    store,
    mcp: {
      open: unused,
      newClient: unused,
      forget: () => undefined,
      onToolsChanged: () => () => undefined,
      watchResources: () => () => undefined,
    },
    codes,
    record: () => undefined,
    log: () => undefined,
    dashboardDir: path.join(path.dirname(builtServer()), 'dashboard'),
    routes: apiRoutes({
      store,
      hub,
      once: new Once({ store, hub, now: Date.now }),
      version: '0',
      settings,
      tokens: new Tokens(store),
      // All that reading asks of the engine.
      clientFor: () => ({ permittedModes: [], allowedDirectories: undefined, writing: () => undefined }) as never,
      signInCode: unused,
      push: unused as never,
      stored: async () => undefined,
      now: Date.now,
      report: console.error,
    }),
  });
}

async function fill(store: Store): Promise<void> {
  const lease = await store.acquireLease('bench', 600_000, {});
  const by: HubRef = { hub: lease.hub, fence: lease.fence };
  const now = Date.now();
  const changes: Change[] = [];
  for (let n = 0; n < SESSIONS; n++) {
    const id = `session-${String(n).padStart(5, '0')}`;
    changes.push({ type: 'session.put', session: sessionRow(id, by, now - n * 1000) });
    if (n % 10 > 0) continue;
    const ask = { toolName: 'Bash', input: { command: 'npm test', description: 'x'.repeat(400) }, toolUseId: `t${n}` };
    changes.push({
      type: 'request.open',
      request: { id: `request-${n}`, sessionId: id, kind: 'permission', ask, createdAt: now - n },
    });
  }
  await store.write(changes, by);
  for (let first = 1; first <= EVENTS; first += EVENTS_PER_WRITE) {
    const events = Array.from({ length: EVENTS_PER_WRITE }, (_, index) => eventRow(first + index, now));
    await store.write(events, by);
  }
}

function sessionRow(id: string, runsOn: HubRef, at: number): StoredSession {
  return {
    id,
    principal: 'local',
    title: `Task of ${id}`,
    cwd: '/home/somebody/project',
    options: {},
    secretNames: [],
    workspace: { type: 'directory' },
    totals: {},
    state: { tag: 'idle', owner: { name: 'local', kind: 'local', role: 'caller', attended: true }, activity: '' },
    createdAt: at,
    lastActiveAt: at,
    runsOn,
  };
}

/** Texts, tool calls and tool results in turn, as in a real session. */
function eventRow(id: number, at: number): Change {
  const toolUseId = `tool-${Math.floor(id / 3)}`;
  const blocks =
    id % 3 === 1
      ? [{ kind: 'text', text: `Event number ${id} says **something** with \`code\`, in a paragraph of usual length.` }]
      : id % 3 === 2
        ? [{ kind: 'tool_call', toolUseId, toolName: 'Bash', input: { command: `echo ${id}` } }]
        : [{ kind: 'tool_result', toolUseId, output: 'line\n'.repeat(20), isError: false }];
  const role = id % 3 === 0 ? 'user' : 'assistant';
  const data = { body: { kind: 'message', role, blocks } };
  return { type: 'event.append', event: { sessionId: LONG, id, at, type: 'output', keep: false, data } };
}
