import { expect, test } from 'vitest';
import type { CanUseTool, Options } from '@anthropic-ai/claude-agent-sdk';
import { AgentProcess } from '../../src/driver/agent-process.ts';
import { deferred } from '../../src/engine/clock.ts';
import type { PermissionAsk } from '../../src/driver/permission-ask.ts';

/** An SDK whose process asks what the test has it ask; `ready` is its answer to the handshake. */
function attached() {
  const ready = deferred<void>();
  const asks: PermissionAsk[] = [];
  let canUseTool: CanUseTool | undefined;
  const query = ({ options }: { options: Options }) => {
    ({ canUseTool } = options);
    const silent = { next: () => new Promise(() => undefined) };
    return { initializationResult: () => ready.promise, [Symbol.asyncIterator]: () => silent };
  };
  const child = { environment: () => ({}), spawned: Promise.resolve(), isTalking: true };
  const listener = {
    onMessage: () => undefined,
    onRequest: (ask: PermissionAsk) => {
      asks.push(ask);
      return Promise.resolve({ behavior: 'allow' as const });
    },
    onExit: () => undefined,
  };
  const launch = { sessionId: 's', history: { kind: 'new' as const }, options: {}, env: {} };
  new AgentProcess({ query } as never, {} as never, launch, listener, child as never);
  const ask = (requestId: string, signal = new AbortController().signal) =>
    canUseTool!('Bash', { command: 'make' }, { requestId, toolUseID: `use ${requestId}`, signal });
  return { ask, asks, ready };
}

test('a process that is taken over asks about one call twice, and is answered as if it had asked once', async () => {
  const { ask, asks, ready } = attached();
  const again = new AbortController();
  const answers = await Promise.all([ask('r1'), ask('r1', again.signal), ask('r2')]);
  expect(asks.map(({ requestId }) => requestId)).toEqual(['r1', 'r2']);
  expect(answers.map((answer) => answer?.behavior)).toEqual(['allow', 'allow', 'allow']);
  expect(asks[0]!.withdrawn.aborted).toBe(false);
  again.abort();
  expect(asks[0]!.withdrawn.aborted).toBe(true);
  // It has been taken over: from now on each question is a new one.
  ready.resolve();
  await new Promise(setImmediate);
  await ask('r1');
  expect(asks).toHaveLength(3);
});
