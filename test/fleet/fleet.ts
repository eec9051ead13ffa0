/** Several hubs on one Postgres, each a process with its own home and state directory, as if on several machines. */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { Tokens } from '../../src/hub/auth/tokens.ts';
import { startScriptedModel, type ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import type { ApiSessionDetail } from '../../src/schema/api.ts';
import type { Role } from '../../src/schema/enums.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import type { Store } from '../../src/store/contract.ts';
import { builtServer } from '../harness/built-server.ts';
import { connectClient } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';
import { killAll, markedProcesses, survivors, TEST_MARKER, type MarkedProcess } from '../harness/marked-processes.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.ts';

/** No call may take longer. Allows for waiting on a command, on the store several times, and for CPU time. */
export const MAX_CALL_MS = 90_000;

export interface ApiReply {
  readonly status: number;
  readonly json: Json;
}

/** A Claude Code process. */
export interface Claude {
  readonly pid: number;
  /** Distinguishes it from a later process with the same pid. */
  readonly startedAt: string;
  readonly command: string;
}

export class FleetHub {
  readonly name: string;
  readonly proxy: TcpProxy;
  readonly #place: IsolatedHome;
  readonly #start: () => Promise<ServerProcess>;
  #process: ServerProcess | undefined;
  #earlierStderr = '';

  constructor(name: string, proxy: TcpProxy, place: IsolatedHome, start: () => Promise<ServerProcess>) {
    this.name = name;
    this.proxy = proxy;
    this.#place = place;
    this.#start = start;
  }

  get process(): ServerProcess {
    if (!this.#process) throw new Error(`Hub ${this.name} is not running`);
    return this.#process;
  }

  get url(): string {
    return readHubRecord(path.join(this.#place.stateDir, 'claude-code-mcp'))?.url ?? 'http://127.0.0.1:1';
  }

  /** All stderr output since the first start, across restarts. */
  get stderr(): string {
    return this.#earlierStderr + (this.#process?.stderr() ?? '');
  }

  async start(): Promise<void> {
    this.#earlierStderr = this.stderr;
    const hub = await this.#start();
    this.#process = hub;
    const isUp = (): boolean => readHubRecord(path.join(this.#place.stateDir, 'claude-code-mcp'))?.pid === hub.pid;
    await Promise.race([
      eventually(isUp, { what: `hub ${this.name} is running`, within: 30_000 }),
      hub.drained.then(() => {
        throw new Error(`Hub ${this.name} did not start. Its stderr:\n${hub.stderr()}`);
      }),
    ]);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.process.kill(signal);
    await this.process.exited;
  }
}

export interface FleetOptions {
  readonly postgresUrl: string;
  readonly hubs: number;
  /** How far each hub's clock is off, in milliseconds. */
  readonly clocks?: readonly number[];
  /** How many sessions each hub may run; new ones go to the hub with the most free slots. */
  readonly places?: readonly number[];
}

export class Fleet {
  readonly hubs: FleetHub[] = [];
  readonly model: ScriptedModel;
  /** The directory shared by all hubs. */
  readonly shared: string;
  readonly store: Store;
  readonly #marker: string;
  readonly #undo: (() => Promise<unknown>)[];
  readonly #tokens = new Map<string, Promise<string>>();

  private constructor(
    model: ScriptedModel,
    shared: string,
    store: Store,
    marker: string,
    undo: (() => Promise<unknown>)[],
  ) {
    this.model = model;
    this.shared = shared;
    this.store = store;
    this.#marker = marker;
    this.#undo = undo;
  }

  /** Starts all hubs at once, on an empty database. */
  static async open({ postgresUrl, hubs, clocks = [], places: maxSessions = [] }: FleetOptions): Promise<Fleet> {
    const marker = randomUUID();
    const undo: (() => Promise<unknown>)[] = [];
    const root = await realpath(await mkdtemp(path.join(tmpdir(), 'ccm-fleet-')));
    undo.push(() => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
    const shared = path.join(root, 'shared');
    await mkdir(shared);
    const model = await startScriptedModel();
    undo.push(() => model.close());
    const members: FleetHub[] = [];
    for (let index = 0; index < hubs; index++) {
      const name = `hub-${String(index)}`;
      const place = await createHome();
      undo.push(() => place.remove());
      const { hostname, port } = new URL(postgresUrl);
      const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
      undo.push(() => proxy.close());
      const url = new URL(postgresUrl);
      url.port = String(proxy.port);
      const clock = clocks[index] ?? 0;
      const shift = path.join(place.home, 'clock.cjs');
      await writeFile(shift, clockScript(clock));
      const env = {
        ...place.env(),
        ...model.env(),
        CLAUDE_CODE_MCP_START_TIMEOUT_MS: '60000',
        [TEST_MARKER]: marker,
        ...(clock !== 0 && { NODE_OPTIONS: `--require ${shift}` }),
      };
      const start = (): Promise<ServerProcess> =>
        ServerProcess.start({
          args: [
            builtServer(),
            ...['hub', '--listen', '127.0.0.1:0', '--store', url.href, '--shared-workspace', shared],
            ...['--max-sessions', String(maxSessions[index] ?? 10)],
          ],
          cwd: place.home,
          env,
        });
      members.push(new FleetHub(name, proxy, place, start));
    }
    const killProcesses = async (): Promise<void> => {
      await killAll(marker);
    };
    undo.push(killProcesses);
    try {
      await Promise.all(members.map((hub) => hub.start()));
      const store = await openPostgresStore({ url: postgresUrl });
      undo.push(() => store.close());
      const fleet = new Fleet(model, shared, store, marker, undo);
      fleet.hubs.push(...members);
      return fleet;
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  }

  async directory(name: string): Promise<string> {
    const directory = path.join(this.shared, name);
    await mkdir(directory, { recursive: true });
    return directory;
  }

  /** One principal per role. */
  token(role: Role = 'caller'): Promise<string> {
    const known = this.#tokens.get(role);
    if (known) return known;
    const made = new Tokens(this.store).create({ name: role, role, attended: false }).then(({ token }) => token);
    this.#tokens.set(role, made);
    return made;
  }

  async api(
    hub: FleetHub,
    method: string,
    where: string,
    { body, role, key }: { body?: object; role?: Role; key?: string } = {},
  ): Promise<ApiReply> {
    const response = await fetch(`${hub.url}/api/v1${where}`, {
      method,
      headers: {
        authorization: `Bearer ${await this.token(role)}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(MAX_CALL_MS),
    });
    return { status: response.status, json: await response.json() };
  }

  /** An MCP client behind a load balancer: each call goes to the hub that `front` returns. */
  async connect(front: () => FleetHub): Promise<Client> {
    const transport = new StreamableHTTPClientTransport(new URL('/mcp', front().url), {
      requestInit: { headers: { authorization: `Bearer ${await this.token()}` } },
      fetch: (url, init) => fetch(new URL(new URL(url).pathname, front().url), init),
    });
    const client = await connectClient(transport, { era: 'legacy' });
    this.#undo.push(() => client.close());
    return client;
  }

  async start(hub: FleetHub, prompt: string, cwd: string, more: object = {}): Promise<string> {
    const { status, json } = await this.api(hub, 'POST', '/sessions', { body: { prompt, cwd, ...more } });
    if (status !== 201) throw new Error(`Starting a session returned ${String(status)}: ${JSON.stringify(json)}`);
    return json.session.sessionId;
  }

  async session(hub: FleetHub, id: string): Promise<ApiSessionDetail> {
    const { status, json } = await this.api(hub, 'GET', `/sessions/${id}`);
    if (status !== 200) throw new Error(`Reading a session returned ${String(status)}: ${JSON.stringify(json)}`);
    return json;
  }

  /** Waits until a hub shows the session with one of these statuses, separated by `|`. */
  async waitForStatus(hub: FleetHub, id: string, statuses: string, withinMs = 45_000): Promise<ApiSessionDetail> {
    return eventually(
      async () => {
        const session = await this.session(hub, id);
        if (statuses.split('|').includes(session.status)) return session;
        throw new Error(`${session.status}: ${JSON.stringify(session)}`);
      },
      { what: `session ${id} is ${statuses} at ${hub.name}`, within: withinMs },
    );
  }

  /** The hub that a session runs on. */
  async ownerOf(id: string): Promise<FleetHub> {
    const row = await this.store.session(id);
    const lease = (await this.store.leases()).find(({ hub }) => hub === row?.runsOn.hub);
    const pid = lease?.info['pid'];
    const hub = this.hubs.find((one) => one.process.pid === pid);
    if (!hub) throw new Error(`No hub runs session ${id}`);
    return hub;
  }

  /** The Claude Code processes of this session, whichever hub started them. */
  async claudesOf(id: string): Promise<MarkedProcess[]> {
    return (await markedProcesses(this.#marker)).filter(
      ({ command }) => command.includes(id) && command.includes('claude-agent-sdk'),
    );
  }

  /**
   * The Claude Code processes by session, whichever hubs started them. Those of one session were alive at the same
   * moment: a scan takes a while, and one process may exit before the next starts, so two scans must find both.
   */
  async claudes(): Promise<Map<string, Claude[]>> {
    const found = await this.#scanClaudes();
    const doubled = [...found].filter(([, claudes]) => claudes.length > 1);
    if (doubled.length === 0) return found;
    const again = await this.#scanClaudes();
    for (const [id, claudes] of doubled)
      found.set(
        id,
        claudes.filter((one) =>
          again.get(id)?.some(({ pid, startedAt }) => pid === one.pid && startedAt === one.startedAt),
        ),
      );
    return found;
  }

  async #scanClaudes(): Promise<Map<string, Claude[]>> {
    const found = new Map<string, Claude[]>();
    for (const { pid, command } of await markedProcesses(this.#marker)) {
      const [, sessionId] =
        / --session-id[ =]([0-9a-f-]{36})/.exec(command) ?? / --resume[ =]([0-9a-f-]{36})/.exec(command) ?? [];
      const startedAt = startTime(pid);
      if (sessionId === undefined || startedAt === undefined || !command.includes('claude-agent-sdk')) continue;
      found.set(sessionId, [...(found.get(sessionId) ?? []), { pid, startedAt, command: command.slice(0, 200) }]);
    }
    return found;
  }

  /** Records the highest number of processes seen for each session, until stopped. */
  watchClaudes(): { most: ReadonlyMap<string, Claude[]>; stop: () => void } {
    const most = new Map<string, Claude[]>();
    const scan = async (): Promise<void> => {
      for (const [id, claudes] of await this.claudes())
        if (claudes.length > (most.get(id)?.length ?? 0)) most.set(id, claudes);
    };
    // Scanning more often would block this process, and with it the proxies. Claude Code lives longer than 500 ms.
    const timer = setInterval(() => void scan(), 500);
    return { most, stop: () => clearInterval(timer) };
  }

  async close(): Promise<void> {
    for (const { process, proxy } of this.hubs) {
      proxy.set('open');
      process.kill('SIGCONT');
      process.kill();
    }
    const left = await survivors(this.#marker, 10_000);
    for (const step of this.#undo.splice(0).reverse()) await step();
    if (left.length > 0) throw new Error(`Left running: ${left.map(({ command }) => command).join('\n')}`);
  }
}

/** From include/linux/sched.h: forked, but not yet running its own program. */
const PF_FORKNOEXEC = 0x40;

/** A process's start time; undefined before it runs its own program, after it has exited, and outside Linux. */
function startTime(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, flags, startedAt] = [fields[0], Number(fields[6]), fields[19]];
  return state === 'Z' || state === 'X' || (flags & PF_FORKNOEXEC) !== 0 ? undefined : startedAt;
}

function clockScript(shiftMs: number): string {
  return `
    const { now } = Date;
    const RealDate = Date;
    globalThis.Date = class extends RealDate {
      constructor(...args) { args.length === 0 ? super(now() + ${String(shiftMs)}) : super(...args); }
      static now() { return now() + ${String(shiftMs)}; }
    };`;
}
