/** An agent inside a session that bypasses the commands and talks to the hub's socket directly. */

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { builtServer } from '../harness/built-server.ts';
import { createHome } from '../harness/isolated-home.ts';

const run = promisify(execFile);

/** Arguments: state directory, socket, request, the pid to claim (`own`, `none` or a number). Prints the reply. */
const AGENT = `
import { createHmac, randomBytes } from 'node:crypto';
import { openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
const [stateDir, path, kind, as] = process.argv.slice(2);
const secret = readFileSync(stateDir + '/hub.secret', 'utf8').trim();
const socket = connect(path);
const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
const send = (value) => socket.write(JSON.stringify(value) + '\\n');
const client = randomBytes(32).toString('hex');
send({ protocol: 1, nonce: client });
const { nonce: hub } = await next();
const words = 'claude-code-mcp client ' + client + ' ' + hub;
send({ proof: createHmac('sha256', secret).update(words).digest('hex') });
if (as !== 'none') openSync(stateDir + '/hub-claim-' + hub, 'wx');
const more = kind === 'terminal' ? JSON.parse(process.argv[6]) : {};
send({ kind, ...more, ...(as !== 'none' && { pid: as === 'own' ? process.pid : Number(as) }) });
process.stdout.write(JSON.stringify(await next()));
socket.end();
`;

/** What a command at a terminal sends. */
const TERMINAL = {
  isInteractive: true,
  place: { user: 'me', home: '/', configDir: '/', stateDir: '/' },
  ...{ version: '1', toolset: 'compact', cwd: '/', given: {}, env: {} },
  rules: {
    ...{ approvals: 'auto', denyOptions: [], allowBypass: false, sandbox: false, sandboxNetwork: [] },
    ...{ maxDepth: 2, depth: 0 },
  },
};

it.runIf(process.platform === 'linux')(
  'an agent that talks to the hub’s socket can neither sign in, stop the hub nor answer, whichever pid it claims',
  { timeout: 60_000 },
  async () => {
    const home = await createHome();
    const hub = (...args: string[]) =>
      run(process.execPath, [builtServer(), 'hub', ...args], { env: home.env(), cwd: home.project });
    onTestFinished(async () => {
      await hub('stop').catch(() => undefined);
      await home.remove();
    });
    await hub('start', '--listen', '127.0.0.1:0');
    const stateDir = join(home.stateDir, 'claude-code-mcp');
    const { socket } = readHubRecord(stateDir)!;
    const script = join(home.project, 'agent.mjs');
    writeFileSync(script, AGENT);
    const session = randomUUID();
    /** Runs the agent with an empty environment; if inside, below a process that carries a session's marker. */
    const askHub = async (inside: boolean, kind: string, as: string): Promise<Record<string, unknown>> => {
      const env = { ...home.env(), ...(inside && { CLAUDE_CODE_MCP_PARENT: session }) };
      const args = ['-c', 'env -i "$@"; true', 'sh', process.execPath, script, stateDir, socket, kind, as];
      args.push(JSON.stringify(TERMINAL));
      return JSON.parse((await run('sh', args, { env })).stdout) as Record<string, unknown>;
    };
    for (const kind of ['sign-in', 'stop', 'restart', 'terminal']) {
      expect(await askHub(true, kind, 'own')).toEqual({
        ok: false,
        why: expect.stringMatching(/does not run inside a session/),
      });
      for (const as of ['none', String(process.pid)])
        expect(await askHub(true, kind, as)).toEqual({ ok: false, why: expect.stringMatching(/cannot identify/) });
    }
    expect(await askHub(false, 'sign-in', 'own')).toMatchObject({ ok: true, code: expect.any(String) });
    expect((await hub('status')).stdout).toContain('127.0.0.1');
    expect(readFileSync(join(stateDir, 'audit.jsonl'), 'utf8')).toContain(`"principal":"nested:${session}"`);
    expect(readdirSync(stateDir).filter((name) => name.startsWith('hub-claim'))).toEqual([]);
  },
);
