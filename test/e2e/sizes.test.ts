import { expect } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifies } from './requirements.ts';
import { check } from './steps.ts';

verifies('wait.cheap', async (variant) => {
  const h = await variant.start();
  const file = join(h.project, 'source.ts');
  writeFileSync(
    file,
    Array.from({ length: 60 }, (_, line) => `export const value${String(line)} = ${String(line)};`).join('\n'),
  );
  const steps = Array.from({ length: 40 }, (_, index) =>
    index % 2 === 0
      ? tool('Read', { file_path: file })
      : tool('Bash', { command: `echo step ${String(index)}`, description: `Print step ${String(index)}` }),
  );
  const answer = 'All forty steps are done. The tests pass.';
  h.model.on('a long task').reply(...steps, text(answer));

  let bytes = 0;
  let calls = 0;
  const count = <T>(data: T): T => {
    calls++;
    bytes += Buffer.byteLength(JSON.stringify(data));
    return data;
  };
  let state = count(await h.ok('claude_code', { prompt: 'a long task' }));
  const { sessionId } = state;
  while (state.status === 'running') {
    // Longer than the default: a loaded machine may take a minute for what takes seconds.
    state = count(await h.ok('claude_code_check', { action: 'wait', sessionId, waitMs: 75_000 }, { timeout: 80_000 }));
  }
  expect(state).toMatchObject({ status: 'idle', result: { result: answer } });
  expect(state.activity).toContain('40 tools (20 Read, 20 Bash)');
  expect(calls).toBeLessThanOrEqual(3);
  expect(bytes).toBeLessThanOrEqual(2_000);

  const view = async (responseMode: string): Promise<number> =>
    Buffer.byteLength(JSON.stringify((await check(h, { action: 'poll', sessionId, responseMode })).events));
  expect(await view('minimal')).toBeLessThanOrEqual((await view('full')) / 5);
});
