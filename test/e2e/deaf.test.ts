/** One call must not keep the server from answering the others. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { RawClient } from '../harness/raw-client.ts';
import { TOOLSETS, type Toolset } from '../harness/toolsets.ts';

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

test.each(TOOLSETS)('levels without end and __proto__ are refused and recorded: %s', async (toolset) => {
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

test('more rules than can be held against every call are refused', async () => {
  const h = await startHarness();
  const disallowedTools = Array.from({ length: 5_000 }, (_, at) => `Bash(rule ${at})`);
  await h.fails('claude_code', { prompt: 'x', disallowedTools }, 'INVALID_ARGUMENT');
});
