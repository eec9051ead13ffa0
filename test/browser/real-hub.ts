import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ApiSession, StartBody } from '../../src/schema/api.ts';
import type { Role } from '../../src/schema/enums.ts';
import type { CreatedToken } from '../../src/schema/api-admin.ts';
import { startScriptedModel, type ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { builtServer } from '../harness/built-server.ts';
import { eventually } from '../harness/eventually.ts';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';
import { runCommandIn } from '../harness/run-command.ts';

const START_MS = 30_000;

export interface RealHubOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** The built hub with the real Claude Code and a scripted model, in its own home. */
export class RealHub {
  readonly home: IsolatedHome;
  readonly model: ScriptedModel;
  readonly #stateDir: string;
  #process: ChildProcess | undefined;
  #listen = '127.0.0.1:0';
  admin = '';
  /** The token that starts sessions. */
  caller = '';
  url = '';

  readonly #options: RealHubOptions;

  private constructor(home: IsolatedHome, model: ScriptedModel, options: RealHubOptions) {
    this.#options = options;
    this.home = home;
    this.model = model;
    this.#stateDir = path.join(home.stateDir, 'hub');
  }

  static async open(options: RealHubOptions = {}): Promise<RealHub> {
    const hub = new RealHub(await createHome({ git: true }), await startScriptedModel(), options);
    await hub.commit('start.txt', 'here\n');
    await hub.start();
    const made = await hub.command('token', 'create', 'you', '--role', 'admin', '--json');
    hub.admin = (JSON.parse(made) as CreatedToken).token;
    hub.caller = await hub.token('editor', 'caller');
    return hub;
  }

  async start(): Promise<void> {
    const args = [
      'hub',
      '--listen',
      this.#listen,
      '--state-dir',
      this.#stateDir,
      '--log-level',
      'warn',
      ...(this.#options.args ?? []),
    ];
    const child = spawn(process.execPath, [builtServer(), ...args], {
      cwd: this.home.project,
      env: { ...this.home.env(), ...this.model.env(), ...this.#options.env },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    this.#process = child;
    const record = await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`the hub exited with code ${child.exitCode}`);
        const parsed = JSON.parse(await readFile(path.join(this.#stateDir, 'hub.json'), 'utf8')) as {
          pid: number;
          url: string;
        };
        if (parsed.pid !== child.pid) throw new Error('hub.json is from an earlier process');
        return parsed;
      },
      { within: START_MS, what: 'the hub is running' },
    );
    this.url = record.url.endsWith('/') ? record.url : `${record.url}/`;
    // The same port after a restart, so that open pages can reconnect.
    this.#listen = new URL(this.url).host;
  }

  async commit(name: string, content: string): Promise<void> {
    const { project, env } = this.home;
    await writeFile(path.join(project, name), content);
    for (const args of [
      ['add', name],
      ['commit', '--quiet', '--message', `feat: ${name}`],
    ]) {
      await promisify(execFile)('git', args, { cwd: project, env: env() });
    }
  }

  async kill(): Promise<void> {
    const child = this.#process;
    child?.kill('SIGKILL');
    if (child) await once(child, 'exit');
  }

  async close(): Promise<void> {
    const child = this.#process;
    if (child?.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await this.model.close();
    await this.home.remove();
  }

  async link(): Promise<string> {
    return (await this.command('hub', 'open', '--print')).trim();
  }

  async token(name: string, role: Role): Promise<string> {
    return (await this.api<CreatedToken>('POST', 'tokens', { name, role }, this.admin)).token;
  }

  async command(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommandIn(this.home, { args: [...args, '--state-dir', this.#stateDir] });
    if (code !== 0) throw new Error(`${args.join(' ')} exited with code ${String(code)}: ${stderr}`);
    return stdout;
  }

  async startSession(body: Partial<StartBody> & { prompt: string }): Promise<ApiSession> {
    const { session } = await this.api<{ session: ApiSession }>('POST', 'sessions', {
      cwd: this.home.project,
      ...body,
    });
    return session;
  }

  async api<Answer>(method: string, route: string, body?: object, token = this.caller): Promise<Answer> {
    const response = await fetch(`${this.url}api/v1/${route}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text}`);
    return JSON.parse(text) as Answer;
  }
}
