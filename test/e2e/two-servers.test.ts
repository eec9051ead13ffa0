/** Two servers of one user never both run a process for one session. */

import { randomUUID } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { callTool } from '../harness/tool-call.ts';
import { runInTerminal } from './terminal-claude.ts';

test('when two servers send to one session at the same time, one starts a process and the other gets SESSION_BUSY', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const first = h.client;
  await h.startServer();
  const clients = [first, h.client];
  h.model.on('begin').reply(text('begun'));
  const fromTerminal = await runInTerminal(h, 'begin');
  for (let round = 1; round <= 2; round++) {
    const held = gate(text('heard'));
    h.model.on(`message ${round}`).reply(held);
    // A session that neither server has used yet.
    const sessionId = await copyOf(h, fromTerminal);
    const call = { sessionId, message: `message ${round}` };
    const answers = await Promise.all(clients.map((client) => callTool(client, 'claude_send_message', call)));
    await held.arrived;
    const processes = (await h.processes()).filter(({ command }) => command.includes(sessionId));
    expect(processes).toHaveLength(1);
    expect(answers.map(({ isError }) => isError).sort()).toEqual([false, true]);
    expect(answers.find(({ isError }) => isError)?.data.error).toMatch(/^Error \[SESSION_BUSY\]: .*pid \d+/);
    held.release();
  }
  await first.close();
});

/** The same conversation under another id. */
async function copyOf(h: Harness, sessionId: string): Promise<string> {
  const transcripts = await readdir(join(h.configDir, 'projects'), { recursive: true });
  const file = join(
    h.configDir,
    'projects',
    transcripts.find((name) => name.endsWith(`${sessionId}.jsonl`))!,
  );
  const copy = randomUUID();
  const content = await readFile(file, 'utf8');
  await writeFile(file.replace(sessionId, copy), content.replaceAll(sessionId, copy));
  return copy;
}
