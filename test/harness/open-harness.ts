/** A server with its own home, project, model and client. Independent of vitest, so that scripts can use it too. */

import type { Client } from '@modelcontextprotocol/client';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { keeperFiles } from '../../src/keeper/protocol.ts';
import { readHubRecord } from '../../src/config/hub-record.ts';
import type { ErrorCode } from '../../src/errors/errors.ts';
import {
  startScriptedModel,
  type ScriptedModel,
  type ScriptedModelOptions,
} from '../../src/scripted-model/scripted-model.ts';
import { builtServer } from './built-server.ts';
import { eventually } from './eventually.ts';
import { connectClient, type ClientSetup, type Era, type Form, type FormRequest } from './connect-client.ts';
import { leftoverFault, modelFault, stderrFault, stdoutFault, type Tolerance } from './faults.ts';
import { createHome, type HomeOptions, type IsolatedHome } from './isolated-home.ts';
import type { Json } from './json.ts';
import { killAll, markedProcesses, survivors, TEST_MARKER, type MarkedProcess } from './marked-processes.ts';
import { ServerProcess } from './server-process.ts';
import { ServerTransport } from './server-transport.ts';
import { SessionSteps } from './session-steps.ts';
import { callTool, expectError, expectOk, type CallOptions, type CallResult } from './tool-call.ts';
import type { Toolset } from './toolsets.ts';

export interface ServerStart {
  /** On top of the isolated environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments of the command. */
  readonly args?: readonly string[];
}

export interface HarnessOptions extends ServerStart, HomeOptions, Partial<ClientSetup> {
  readonly toolset?: Toolset;
  /** `false` starts the server without a client, for starts that should fail. */
  readonly connect?: boolean;
  readonly tolerate?: Tolerance;
  /** How long the started processes may take to exit. */
  readonly graceMs?: number;
  /** `none` records no model requests, for long runs whose memory would grow without bound. */
  readonly record?: ScriptedModelOptions['record'];
  /** The program for node to run instead of the built server. */
  readonly program?: string;
  /** A hub runs in the same home, and the server attaches to it. Pages that reconnect need one that keeps its port. */
  readonly hub?: ServerStart & { readonly keepsPort?: boolean };
  /** Runs before the server starts. */
  readonly prepare?: (h: Harness) => void | Promise<void>;
}

/** Only for leaks. How soon processes must end is tested in `resilience-process-trees.test.ts`. */
const GRACE_MS = 15_000;

export class Harness extends SessionSteps {
  readonly toolset: Toolset;
  readonly era: Era;
  readonly model: ScriptedModel;
  /** Every form that was shown, oldest first. */
  readonly forms: FormRequest[] = [];
  readonly #marker = randomUUID();
  readonly #options: HarnessOptions;
  readonly #place: IsolatedHome;
  readonly #connections: { readonly server: ServerProcess; readonly transport: ServerTransport }[] = [];
  readonly #hubs: ServerProcess[] = [];
  #listen = '127.0.0.1:0';
  #client: Client | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: HarnessOptions, place: IsolatedHome, model: ScriptedModel) {
    const toolset = options.toolset ?? 'compact';
    super(toolset, (tool, args) => this.ok(tool, args));
    this.toolset = toolset;
    this.era = options.era ?? 'modern';
    this.model = model;
    this.#options = options;
    this.#place = place;
  }

  get home(): string {
    return this.#place.home;
  }

  get project(): string {
    return this.#place.project;
  }

  get configDir(): string {
    return this.#place.configDir;
  }

  get stateDir(): string {
    return this.#place.stateDir;
  }

  get server(): ServerProcess {
    const connection = this.#connections.at(-1);
    if (connection === undefined) throw new Error('The server was not started');
    return connection.server;
  }

  get hub(): ServerProcess {
    const hub = this.#hubs.at(-1);
    if (hub === undefined) throw new Error('No hub was started');
    return hub;
  }

  get client(): Client {
    if (this.#client === undefined) throw new Error('No client is connected');
    return this.#client;
  }

  call(tool: string, args: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<CallResult> {
    return callTool(this.client, tool, args, options);
  }

  /** Returns what the tool answered; an error fails the test. */
  async ok(tool: string, args: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<Json> {
    return expectOk(tool, await this.call(tool, args, options));
  }

  /** Returns the error message; anything but this error fails the test. */
  async fails(
    tool: string,
    args: Readonly<Record<string, unknown>>,
    code: ErrorCode,
    options?: CallOptions,
  ): Promise<string> {
    return expectError(tool, await this.call(tool, args, options), code);
  }

  /** The server and all its descendants. */
  processes(): Promise<MarkedProcess[]> {
    return markedProcesses(this.#marker);
  }

  /** Resolves once clients can find it. */
  async startHub(start: ServerStart = this.#options.hub ?? {}): Promise<void> {
    const hub = await ServerProcess.start({
      args: [this.#options.program ?? builtServer(), 'hub', '--listen', this.#listen, ...(start.args ?? [])],
      cwd: this.home,
      env: this.environment(start.env),
    });
    this.#hubs.push(hub);
    const isUp = (): boolean => this.#hubRecord()?.pid === hub.pid;
    await Promise.race([
      eventually(isUp, { what: 'the hub is running' }),
      hub.drained.then(() => {
        throw new Error(`The hub did not start. Its stderr:\n${hub.stderr()}`);
      }),
    ]);
    if (this.#options.hub?.keepsPort) this.#listen = new URL(this.hubUrl).host;
  }

  get hubUrl(): string {
    const url = this.#hubRecord()?.url;
    if (url === undefined) throw new Error('No hub is running');
    return url;
  }

  #hubRecord(): ReturnType<typeof readHubRecord> {
    return readHubRecord(join(this.stateDir, 'claude-code-mcp'));
  }

  async stopHub(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.hub.kill(signal);
    await this.hub.exited;
  }

  /** The process that holds Claude Code for the hub, while there is one. */
  get keeperPid(): number | undefined {
    try {
      const { pid } = JSON.parse(readFileSync(keeperFiles(join(this.stateDir, 'claude-code-mcp')).record, 'utf8'));
      return isRunning(pid) ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  /** As if the power had gone: the hub, the keeper and what it held. */
  async killHubAndKeeper(): Promise<void> {
    const { keeperPid } = this;
    await this.stopHub('SIGKILL');
    if (keeperPid === undefined) return;
    process.kill(keeperPid, 'SIGKILL');
    await eventually(() => !isRunning(keeperPid), { what: 'the keeper is gone' });
  }

  async startServer(start: ServerStart = {}): Promise<void> {
    const { toolset, connect = true, program = builtServer() } = this.#options;
    const server = await ServerProcess.start({
      args: [program, ...(start.args ?? this.#options.args ?? [])],
      cwd: this.project,
      env: this.environment({
        ...(toolset && { CLAUDE_CODE_MCP_TOOLSET: toolset }),
        ...this.#options.env,
        ...start.env,
      }),
    });
    const transport = new ServerTransport(server);
    this.#connections.push({ server, transport });
    this.#client = connect ? await this.#connect(transport) : undefined;
  }

  /** Ends the server if it is still running, and starts another in the same home. */
  async restartServer(start: ServerStart = {}): Promise<void> {
    await this.#client?.close();
    this.server.closeStdin();
    const { exited, pid } = this.server;
    const inTime = await Promise.race([exited, sleep(GRACE_MS, undefined, { ref: false })]);
    if (inTime === undefined)
      throw new Error(`The server (${pid}) is still running ${GRACE_MS} ms after its stdin was closed`);
    await this.startServer(start);
  }

  /** Ends and removes everything. Rejects with everything a test must not leave behind. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** The environment of the server and the hub. */
  environment(env?: ServerStart['env']): Record<string, string> {
    return { ...this.#place.env(), ...this.model.env(), ...SLOW_START, ...env, [TEST_MARKER]: this.#marker };
  }

  async #connect(transport: ServerTransport): Promise<Client> {
    const { form, capabilities, clientOptions } = this.#options;
    const recordedForm: Form = (request, withdrawn) => {
      this.forms.push(request);
      return form!(request, withdrawn);
    };
    const setup = { era: this.era, form: form && recordedForm, capabilities, clientOptions };
    try {
      return await connectClient(transport, setup);
    } catch (error) {
      throw new Error(`No connection to the server. Its stderr:\n${this.server.stderr()}`, { cause: error });
    }
  }

  async #close(): Promise<void> {
    for (const { server } of this.#connections) server.closeStdin();
    for (const hub of this.#hubs) hub.kill();
    const processes = [...this.#connections.map(({ server }) => server), ...this.#hubs];
    const { graceMs = GRACE_MS, tolerate = {} } = this.#options;
    const deadline = performance.now() + graceMs;
    // Scanning every process on the machine is expensive, so wait for the known ones first.
    await Promise.race([Promise.all(processes.map(({ exited }) => exited)), sleep(graceMs, undefined, { ref: false })]);
    // A hub that was killed leaves its keeper behind; one that was stopped does not.
    const { keeperPid } = this;
    if (keeperPid !== undefined) {
      process.kill(keeperPid, 'SIGTERM');
      await eventually(() => !isRunning(keeperPid), { what: 'the keeper has ended' });
    }
    const left = await survivors(this.#marker, deadline - performance.now());
    if (left.length > 0) await killAll(this.#marker);
    await Promise.all(processes.map(({ drained }) => drained));
    await this.#client?.close();
    await this.model.close();
    await this.#place.remove();

    const stderr = processes.map((one) => one.stderr()).join('');
    const faults = [
      ...leftoverFault(left, graceMs),
      ...stdoutFault(this.#connections.flatMap(({ transport }) => transport.foreignOutput())),
      ...(tolerate.stderr ? [] : stderrFault(stderr)),
      ...(tolerate.unexpectedRequests ? [] : modelFault(this.model)),
    ];
    if (faults.length > 0) throw new Error(faults.join('\n\n'));
  }
}

/** Longer than the default: a machine that runs many tests at once may need it. */
const SLOW_START = { CLAUDE_CODE_MCP_START_TIMEOUT_MS: '40000' };

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

export async function openHarness(options: HarnessOptions = {}): Promise<Harness> {
  const harness = new Harness(
    options,
    await createHome(options),
    await startScriptedModel({ record: options.record ?? 'all' }),
  );
  try {
    await options.prepare?.(harness);
    if (options.hub) await harness.startHub();
    await harness.startServer();
  } catch (error) {
    // What the clean-up reports is a consequence of this error.
    await harness.close().catch(() => undefined);
    throw error;
  }
  return harness;
}
