/** `hub restart`, as a user types it, while clients of every kind wait for a response. */

import type { Client } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { ENDLESS, startEndless } from '../e2e/endless-command.ts';
import { FAKE_CLAUDE } from '../e2e/stand-in.ts';
import { connectClient, type Era } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import { runCommandIn } from '../harness/run-command.ts';
import { callTool, expectOk, type CallOptions } from '../harness/tool-call.ts';

/** Clients keep the address, so the restarted hub needs the same one. */
async function freeAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

/** A Claude Code that reports its start when it is told to. */
function slowClaude(directory: string) {
  const [program, begun, go] = ['slow-claude', 'begun', 'go'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const script = `touch ${begun}; until [ -e ${go} ]; do sleep 0.05; done; exec ${process.execPath} ${FAKE_CLAUDE} "$@"`;
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const advanced = { pathToClaudeCodeExecutable: program, env: { FAKE_CLAUDE: 'ordinary' } };
  return { options: { advanced }, hasBegun: () => existsSync(begun), goOn: () => writeFileSync(go, '') };
}

test(
  'sessions go on, the waits of attached clients too; those over HTTP end, and all continue with the restarted hub',
  { timeout: 120_000 },
  async () => {
    const address = await freeAddress();
    const h = await startHarness({ hub: { args: ['--listen', address] } });
    const place = { project: h.project, env: () => h.environment() };
    const command = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await runCommandIn(place, { args });
      expect([code, stderr]).toEqual([0, '']);
      return stdout;
    };
    const { token } = JSON.parse(await command('token', 'create', 'program', '--role', 'caller', '--json')) as {
      token: string;
    };
    const connect = (era: Era): Promise<Client> => {
      const headers = { authorization: `Bearer ${token}` };
      const url = new URL(`http://${address}/mcp`);
      return connectClient(new StreamableHTTPClientTransport(url, { requestInit: { headers } }), { era });
    };
    const first = await connect('legacy');
    const programs = [
      { era: 'legacy', client: first },
      { era: 'modern', client: await connect('modern') },
    ];
    onTestFinished(async () => {
      for (const { client } of programs) await client.close();
    });
    h.model.on('work over http').reply(tool('Bash', { command: ENDLESS, description: 'endless' }));
    h.model.on('go on').reply(text('gone on'));

    const attached = await startEndless(h);
    const started = { prompt: 'work over http', cwd: h.project, allowedTools: ['Bash'] };
    const { sessionId } = expectOk('claude_code', await callTool(first, 'claude_code', started));
    const over = async (client: Client, name: string, args: object): Promise<Json> =>
      expectOk(name, await callTool(client, name, { sessionId, ...args }));
    // The first progress shows that a call has reached the hub.
    const heard = new Set<string>();
    const wait = { action: 'wait', waitMs: 49_000, sessionId };
    const markHeard = (who: string): CallOptions => ({ onProgress: () => heard.add(who) });
    const cutAttached = h.call('claude_code_check', { ...wait, sessionId: attached }, markHeard('attached'));
    const cut = programs.map(({ era, client }) =>
      callTool(client, 'claude_code_check', wait, markHeard(era)).then(
        ({ text: answer }) => `answered ${answer}`,
        (error: unknown) => String(error),
      ),
    );
    await eventually(() => heard.size === 3, { what: 'all three calls have reached the hub' });

    const slowly = slowClaude(h.home);
    const late = h.ok('claude_code', { prompt: 'a late start', ...slowly.options });
    await eventually(slowly.hasBegun, { what: 'a session is being started' });
    const restarted = command('hub', 'restart');
    for (const outcome of await Promise.all(cut)) expect(outcome).toContain('The hub is stopping');
    slowly.goOn();
    expect(await restarted).toContain(`The hub is running: http://${address}`);
    onTestFinished(() => command('hub', 'stop').then(() => undefined));
    // The hub stopped once this was done, and the next one has the answer.
    expect(await late).toMatchObject({ sessionId: expect.any(String), status: 'running' });

    for (const { client } of programs)
      expect(await over(client, 'claude_code_check', { action: 'poll' })).toMatchObject({ status: 'running' });
    await h.ok('claude_code_session', { action: 'interrupt', sessionId: attached });
    expect(expectOk('claude_code_check', await cutAttached)).toMatchObject({ status: 'idle' });
    await over(first, 'claude_code_session', { action: 'interrupt' });
    expect(await over(first, 'claude_code_reply', { prompt: 'go on', waitMs: 45_000 })).toMatchObject({
      status: 'idle',
      result: { result: 'gone on' },
    });
  },
);
