import { expect, test } from 'vitest';
import type { CanUseTool, Options } from '@anthropic-ai/claude-agent-sdk';
import { AgentProcess, type AgentLaunch } from '../../src/driver/agent-process.ts';
import type { TranscriptMirror } from '../../src/driver/sdk-options.ts';
import { deferred } from '../../src/engine/clock.ts';
import type { PermissionAsk } from '../../src/driver/permission-ask.ts';

/** An SDK whose process asks what the test has it ask; `ready` is its answer to the handshake. */
function attached(more: Partial<AgentLaunch> = {}) {
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
  const launch = { sessionId: 's', history: { kind: 'new' as const }, options: {}, env: {}, ...more };
  const process = new AgentProcess({ query } as never, {} as never, launch, listener, child as never);
  const ask = (requestId: string, signal = new AbortController().signal) =>
    canUseTool!('Bash', { command: 'make' }, { requestId, toolUseID: `use ${requestId}`, signal });
  return { process, ask, asks, ready };
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

test('a request counts as asked again while its transcript is still being stored', async () => {
  const stored = deferred<void>();
  const mirror = { store: {}, holds: () => stored.promise } as unknown as TranscriptMirror;
  const { process, ask, asks, ready } = attached({ mirror });
  const answer = ask('r1');
  ready.resolve();
  expect([...(await process.ready())]).toEqual(['r1']);
  expect(asks).toEqual([]);
  stored.resolve();
  expect((await answer)?.behavior).toBe('allow');
});
