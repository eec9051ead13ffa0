/** One incarnation of a hub on a store: the real engine and journal, with scripted agents. */

import type { AgentLaunch, AgentListener, AgentProcess } from '../../src/driver/agent-process.ts';
import type { Decision } from '../../src/driver/permission-ask.ts';
import { loadSettings } from '../../src/config/load-settings.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { AuditRecord, EngineServices, FleetLease } from '../../src/engine/ports.ts';
import { joinFleet } from '../../src/fleet/other-hubs.ts';
import { Journal } from '../../src/hub/journal.ts';
import type { HubRef } from '../../src/schema/store.ts';
import type { Store } from '../../src/store/contract.ts';
import { onTestFinished } from 'vitest';
import { permissionAsk } from '../mcp/forms/open-request.ts';
import { heardAs, IDLE, resultEvent, RUNNING, STARTED, textEvent, type Said } from '../harness/agent-messages.ts';
import { eventually } from '../harness/eventually.ts';
import { ManualClock } from '../harness/manual-clock.ts';

export class FakeAgent {
  readonly prompts: string[] = [];
  readonly launch: AgentLaunch;
  readonly #listener: AgentListener;
  readonly #reports: boolean;
  alive = true;

  constructor(launch: AgentLaunch, listener: AgentListener, reports: boolean) {
    this.launch = launch;
    this.#listener = listener;
    this.#reports = reports;
  }

  async models(): Promise<[]> {
    return [];
  }

  send(text: string, id: string): void {
    this.prompts.push(text);
    if (!this.#reports) return;
    queueMicrotask(() => this.say(STARTED, RUNNING, { kind: 'delivery', messageId: id, state: 'started' }));
  }

  say(...said: Said[]): void {
    if (this.alive) for (const one of said) this.#listener.onMessage(heardAs(one));
  }

  answer(text: string): void {
    this.say(textEvent(text), resultEvent({ text, cumulativeCostUsd: 0.01 }), IDLE);
  }

  ask(requestId: string, toolName: string, input: Record<string, unknown>, agentId?: string): Promise<Decision> {
    const toolUseId = `tool-${requestId}`;
    this.say({ kind: 'message', role: 'assistant', blocks: [{ kind: 'tool_call', toolUseId, toolName, input }] });
    return this.askAgain(requestId, toolName, input, agentId);
  }

  /** A question that an earlier hub has had. */
  askAgain(requestId: string, toolName: string, input: Record<string, unknown>, agentId?: string): Promise<Decision> {
    return this.#listener.onRequest({
      ...permissionAsk(toolName, input),
      requestId,
      toolUseId: `tool-${requestId}`,
      ...(agentId !== undefined && { agentId }),
    });
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  die(): void {
    this.alive = false;
    this.#listener.onExit({ code: null, signal: 'SIGKILL', stderr: '', error: undefined });
  }

  setLent(): void {}

  stop(): Promise<void> {
    this.alive = false;
    return Promise.resolve();
  }
}

export interface TestHub {
  readonly engine: Engine;
  readonly journal: Journal;
  readonly by: HubRef;
  readonly clock: ManualClock;
  readonly agents: FakeAgent[];
  readonly audit: AuditRecord[];
  /** A new incarnation has started. */
  fenced: boolean;
  /** Waits for a live agent that has a prompt. */
  agent(): Promise<FakeAgent>;
  /** Stops all writes of this incarnation, as SIGKILL would. */
  kill(): void;
  /** Stores what is left, unless it was killed, and then writes nothing more. */
  close(): Promise<void>;
}

const CWD = process.cwd();

function unexpected(line: string): never {
  throw new Error(line);
}

export interface TestHubOptions {
  readonly argv?: readonly string[];
  /** Called before and after every journal write. */
  readonly watch?: (phase: 'before' | 'after') => void;
  /** Receives the lines that the hub would log; if omitted, any line fails the test. */
  readonly warn?: (line: string) => void;
  /** The hub's name in the store. */
  readonly hub?: string;
  readonly sharedWorkspace?: string;
  /** The slots it announces to the others. */
  readonly places?: { free: number; max: number };
  /** Whether it talks to the other hubs. */
  readonly isFleet?: boolean;
  readonly lease?: FleetLease;
  /** If omitted, sessions have no workspace to report changes in. */
  readonly workspaces?: EngineServices['workspaces'];
  /** The session whose process an earlier hub has left, if one has. */
  readonly keeps?: string;
  /** Whether agents say that they have taken a message up. */
  readonly reports?: boolean;
  /** Awaited before an agent is there. */
  readonly beforeLaunch?: () => Promise<void>;
  /** Whether a message is in its session's transcript; for an empty id, whether anything is. */
  readonly isWritten?: (messageId: string) => boolean;
}

/** A hub that is closed after this test, before the store that was opened for it. */
export async function startTestHub(store: Store, options?: TestHubOptions): Promise<TestHub> {
  const hub = await openTestHub(store, options);
  onTestFinished(() => hub.close());
  return hub;
}

/** For use outside a test. */
export async function openTestHub(
  store: Store,
  {
    argv = [],
    watch = () => undefined,
    warn = unexpected,
    hub: name = 'hub',
    sharedWorkspace,
    places = { free: 10, max: 10 },
    isFleet = false,
    lease,
    workspaces,
    keeps,
    beforeLaunch = () => Promise.resolve(),
    reports = true,
    isWritten = () => true,
  }: TestHubOptions = {},
): Promise<TestHub> {
  const clock = new ManualClock();
  clock.setWallTime(Date.now());
  const { hub, fence } = await store.acquireLease(name, 15_000, { host: name, places, sharedWorkspace });
  const by = { hub, fence };
  let life: 'running' | 'closing' | 'killed' = 'running';
  const writes: Store = Object.create(store) as Store;
  writes.write = async (changes, by) => {
    if (life === 'killed') return new Promise<never>(() => undefined);
    watch('before');
    await store.write(changes, by);
    watch('after');
  };
  // A test may end while its store is unavailable: only what is logged before that counts.
  const log = (_level: string, line: string): void => {
    if (life === 'running') warn(line);
  };
  const journal = new Journal({
    store: writes,
    by,
    now: () => clock.wallTime(),
    log,
    onFenced: () => {
      self.fenced = true;
    },
  });
  const fleet = isFleet ? joinFleet({ store: writes, by, journal }) : undefined;
  const agents: FakeAgent[] = [];
  const audit: AuditRecord[] = [];
  const host = { env: {}, cwd: CWD, homedir: CWD, platform: process.platform };
  const launch = async (launched: AgentLaunch, listener: AgentListener): Promise<AgentProcess> => {
    await beforeLaunch();
    const agent = new FakeAgent(launched, listener, reports);
    agents.push(agent);
    return agent as unknown as AgentProcess;
  };
  const run = { run: 'run', session: keeps ?? '', rules: {}, hasEnded: false, deaths: 0 };
  const engine = new Engine({ ...loadSettings({ ...host, argv }), sharedWorkspace }, CWD, {
    clock,
    driver: { launch },
    ...(keeps !== undefined && {
      kept: {
        find: (id) => (id === keeps ? run : undefined),
        has: () => false,
        adopt: (_run, launched, listener) => launch(launched, listener),
        end: async () => undefined,
        leave: () => undefined,
      },
    }),
    transcripts: {
      find: async () => ({ cwd: CWD }),
      lastCostUsd: async () => 0,
      tally: async () => ({ turns: 0, hasUnwrittenCost: false }),
      list: async () => [],
      lock: async () => ({ release: async () => undefined }),
      salvage: async () => isWritten(''),
      mentions: async (_sessionId, messageId) => isWritten(messageId),
      isProjectWrittenSince: async () => true,
      findHolder: async () => undefined,
    },
    audit: { record: (entry) => void audit.push(entry) },
    archive: journal,
    ...(fleet && { others: fleet.others }),
    ...(lease && { lease }),
    ...(workspaces && { workspaces }),
    configDir: '',
    isTrusted: () => Promise.resolve(true),
    baseEnv: {},
    log: () => undefined,
  });
  const self: TestHub = {
    fenced: false,
    engine,
    journal,
    by,
    clock,
    agents,
    audit,
    agent: () =>
      eventually(() => agents.find(({ alive, prompts }) => alive && prompts.length > 0), {
        what: 'an agent is running',
      }),
    kill: () => {
      life = 'killed';
      void runner?.close(0);
    },
    close: async () => {
      if (life === 'running') life = 'closing';
      await runner?.close(0);
      if (life === 'closing') await journal.close(1_000);
    },
  };
  journal.follow(engine);
  for (const id of await journal.unfinished()) await engine.finder.recall(id);
  const runner = fleet?.runCommands(engine, log);
  return self;
}
