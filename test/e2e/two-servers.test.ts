/** Two servers of one user never have a process each for one session. */

import { expect, test } from 'vitest';
import { gate, text } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import { callTool } from '../harness/tool-call.ts';
import { runInTerminal } from './terminal-claude.ts';

test('of two servers that send to one session in the same instant one starts a process, the other is told it is busy', async () => {
  const h = await startHarness({ toolset: 'explicit' });
  const first = h.client;
  await h.startServer();
  const clients = [first, h.client];
  h.model.on('begin').always(text('begun'));
  for (let round = 1; round <= 2; round++) {
    const held = gate(text('heard'));
    h.model.on(`message ${round}`).reply(held);
    const sessionId = await runInTerminal(h, 'begin');
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
