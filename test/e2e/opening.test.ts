/** How a connection is opened. Every other test shows that sessions work on it afterwards. */

import { describe, expect, onTestFinished, test } from 'vitest';
import { builtServer } from '../harness/built-server.ts';
import { eventually } from '../harness/eventually.ts';
import { createHome } from '../harness/isolated-home.ts';
import type { Json } from '../harness/json.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { TOOLSETS, type Toolset } from '../harness/toolsets.ts';

const CLIENT = { name: 'test', version: '1' };
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': CLIENT,
  'io.modelcontextprotocol/clientCapabilities': {},
};

const initialize = (protocolVersion: string): Json => ({
  jsonrpc: '2.0',
  id: 'i',
  method: 'initialize',
  params: { protocolVersion, capabilities: {}, clientInfo: CLIENT },
});
const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
const list = (params: Json): Json => ({ jsonrpc: '2.0', id: 'l', method: 'tools/list', params });

/** The answers of a new server to these messages, by id. */
async function answersTo(toolset: Toolset, messages: Json[], expected: number): Promise<Record<string, Json>> {
  const home = await createHome();
  const server = await ServerProcess.start({
    args: [builtServer()],
    cwd: home.project,
    env: { ...home.env(), CLAUDE_CODE_MCP_TOOLSET: toolset },
  });
  onTestFinished(async () => {
    server.closeStdin();
    await server.drained;
    await home.remove();
  });
  const answers: Json[] = [];
  server.onLine = (line) => answers.push(JSON.parse(line));
  for (const message of messages) await server.write(`${JSON.stringify(message)}\n`);
  await eventually(() => answers.length >= expected, { what: 'all answers have arrived', within: 20_000 });
  expect(answers).toHaveLength(expected);
  return Object.fromEntries(answers.map((answer) => [answer.id, answer.result]));
}

describe.each(TOOLSETS)('the opening of a connection (%s)', (toolset) => {
  test('is answered as the protocol library would, in the legacy era', async () => {
    const fromRecord = await answersTo(toolset, [initialize('2025-11-25'), initialized, list({})], 2);
    // Not in the recorded answers, so it goes to the library, which settles on its newest version.
    const fromLibrary = await answersTo(toolset, [initialize('2099-01-01'), initialized, list({})], 2);
    expect(fromRecord).toEqual(fromLibrary);
  });

  test('is answered as the protocol library would, in the modern era', async () => {
    const discover = (params: Json): Json => ({ jsonrpc: '2.0', id: 'd', method: 'server/discover', params });
    const fromRecord = await answersTo(toolset, [discover({ _meta: ENVELOPE }), list({ _meta: ENVELOPE })], 2);
    // Not in the recorded answers, so it goes to the library.
    const other = { _meta: ENVELOPE, other: true };
    const fromLibrary = await answersTo(toolset, [discover(other), list(other)], 2);
    expect(fromRecord).toEqual(fromLibrary);
  });
});

test('a request right after the opening is answered, and nothing is answered twice', async () => {
  const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' };
  const answers = await answersTo('compact', [initialize('2025-06-18'), initialized, ping, list({})], 3);
  expect(Object.keys(answers).sort()).toEqual(['i', 'l', 'p']);
});
