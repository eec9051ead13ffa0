/** One call must not keep the server from answering the others. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { RawClient } from '../harness/raw-client.ts';
import { TOOLSETS, type Toolset } from '../harness/toolsets.ts';

const shared = shareHarness();

const START: Readonly<Record<Toolset, string>> = { compact: 'claude_code', explicit: 'claude_create_session' };

async function refused(client: RawClient, toolset: Toolset, args: string): Promise<string> {
  const answer = await client.requestRaw(
    'tools/call',
    `{"name":"${START[toolset]}","arguments":{"prompt":"x",${args}}}`,
  );
  const { error } = JSON.parse((answer as { result: Json }).result.content[0].text) as { error: string };
  return error;
}

async function outcomes(h: Harness): Promise<unknown[]> {
  const log = await readFile(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8').catch(() => '');
  return log
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Json => JSON.parse(line))
    .filter(({ kind }) => kind === 'tool_call')
    .map(({ outcome }) => outcome as unknown);
}

test.each(TOOLSETS)('extreme nesting and __proto__ are refused and audited: %s', async (toolset) => {
  const h = await startHarness({ connect: false, toolset });
  const client = new RawClient(h.server);
  await client.initialize();
  const deep = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
  expect(await refused(client, toolset, `"agents":{"a":${deep}}`)).toMatch(
    /^Error \[INVALID_ARGUMENT\]: agents: nested/,
  );
  expect(await refused(client, toolset, '"__proto__":{"polluted":1}')).toMatch(
    /^Error \[INVALID_ARGUMENT\]: .*__proto__/,
  );
  expect(await refused(client, toolset, '"agents":{"__proto__":{}}')).toMatch(
    /INVALID_ARGUMENT\]: .*agents\.__proto__/,
  );
  await eventually(async () => (await outcomes(h)).length === 3, { what: 'each call is in the audit log' });
  expect(await outcomes(h)).toEqual(['INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT']);
  expect((await h.processes()).filter(({ command }) => command.includes('stream-json'))).toEqual([]);
});

test('more rules than can be checked on every call are refused', async () => {
  const h = shared();
  const disallowedTools = Array.from({ length: 5_000 }, (_, at) => `Bash(rule ${at})`);
  await h.fails('claude_code', { prompt: 'x', disallowedTools }, 'INVALID_ARGUMENT');
});

/** Expects that while this call is pending, another is answered within two seconds of CPU time. */
async function answersMeanwhile<T>(h: Harness, call: Promise<T>): Promise<T> {
  const before = cpuMs(h.server.pid);
  await h.ok('claude_code_session', { action: 'list' });
  expect(cpuMs(h.server.pid) - before).toBeLessThan(2_000);
  return call;
}

/** On a busy machine, elapsed time says little. */
function cpuMs(pid: number): number {
  if (process.platform !== 'linux') return performance.now();
  const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = line
    .slice(line.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}

test('a settings file that is a pipe or endless is refused, and does not block other calls', async () => {
  const h = shared();
  const pipe = join(h.project, 'pipe');
  execFileSync('mkfifo', [pipe]);
  for (const settings of [pipe, '/dev/zero']) {
    const refusal = h.fails('claude_code', { prompt: 'x', advanced: { settings } }, 'INVALID_ARGUMENT');
    expect(await answersMeanwhile(h, refusal)).toContain('is not a regular file');
  }
});

describe('with ALLOWED_DIRS', () => {
  const fenced = shareHarness({ env: { CLAUDE_CODE_MCP_ALLOWED_DIRS: tmpdir() } });

  test.each([
    ['dots', '.'.repeat(200_000)],
    ['mentions', '@a '.repeat(100_000)],
  ])('a prompt with very many %s does not block other calls', async (_, prompt) => {
    const h = fenced();
    h.model.on(prompt.slice(0, 100)).reply('read');
    const sessionId = await answersMeanwhile(h, h.converse(prompt));
    expect(await answersMeanwhile(h, h.waitUntilRest(sessionId))).toMatchObject({ result: { result: 'read' } });
  });
});

/** Claude Code (2.1.325) takes hours to match this rule against a command of 80 letters. */
const SLOW_RULE = `Bash(true ${'a*'.repeat(30)}b)`;

test('a rule that Claude Code itself would never finish matching is refused', async () => {
  const h = shared();
  for (const name of ['disallowedTools', 'allowedTools'])
    expect(await h.fails('claude_code', { prompt: 'x', [name]: [SLOW_RULE] }, 'INVALID_ARGUMENT')).toContain(
      'wildcards',
    );
});

test('a hanging Claude Code does not block other calls, and can be cancelled', async () => {
  const h = shared();
  const command = `true ${'a'.repeat(80)}`;
  h.model.on('hang').reply(tool('Bash', { command, description: 'x' }), text('never'));
  const settings = { permissions: { deny: [SLOW_RULE] } };
  const { sessionId } = await h.ok('claude_code', { prompt: 'hang', advanced: { settings } });
  const isHanging = ({ activity }: Json): boolean => activity?.includes(`now: ${command.slice(0, 20)}`);
  await answersMeanwhile(h, h.waitFor(sessionId, isHanging, { what: 'Claude Code is checking the command' }));
  const cancelled = h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(await answersMeanwhile(h, cancelled)).toMatchObject({ sessions: [{ status: 'cancelled' }] });
});
