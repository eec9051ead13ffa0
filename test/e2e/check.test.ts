/** Polling a session and waiting for it: what is returned, page by page, and what it costs a caller. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { gate, reply, text, tool } from '../../src/scripted-model/reply.ts';
import type { Json } from '../harness/json.ts';
import { verifies } from './requirements.ts';
import { check, pollAll, start, turn } from './steps.ts';

const echo = (words: string) => tool('Bash', { command: `echo ${words}`, description: `say ${words}` });

verifies(['look.at-once', 'check.poll-interval', 'check.no-events', 'check.activity'], async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('say it').reply(echo('one'), held);
  const sessionId = await h.converse('say it');
  await held.arrived;
  const polled = await check(h, { action: 'poll', sessionId });
  expect(polled).toMatchObject({ sessionId, status: 'running', pollInterval: 3000, events: expect.any(Array) });
  expect(polled.result).toBeUndefined();
  expect(polled.activity).toMatch(/^1 tool \(1 Bash\), now: thinking$/);
  const waited = await check(h, { action: 'wait', sessionId, waitMs: 50 });
  expect(waited).toMatchObject({ status: 'running', pollInterval: 3000 });
  expect(waited).not.toHaveProperty('events');
  const full = await check(h, { action: 'poll', sessionId, responseMode: 'full' });
  expect(full).toMatchObject({ lastEventId: expect.any(Number), lastToolUseId: expect.any(String) });
  expect(waited.nextCursor).toBe(Number(full.lastEventId) + 1);
  held.release();
  await h.waitUntilRest(sessionId);

  h.model.on('say more').reply(echo('x'.repeat(500)), text('done'));
  const { activity } = await h.ok('claude_code_reply', { sessionId, prompt: 'say more', waitMs: 40_000 });
  expect(activity.length).toBeLessThanOrEqual(200);
  expect(activity).not.toContain('\n');
});

verifies(
  ['check.event-ids', 'check.minimal-view', 'check.full-view', 'check.cursor-without-events'],
  async (variant) => {
    const h = await variant.share();
    h.model
      .on('say it')
      .reply(
        reply()
          .thinking('let me see')
          .text('I will say it.')
          .tool('Bash', { command: 'echo one', description: 'say one' }),
        tool('Bash', { command: 'ls no-such-file', description: 'fail' }),
        text('Said.'),
      );
    const { sessionId, from } = await turn(h, 'say it');

    const full = await check(h, { action: 'poll', sessionId, cursor: from, responseMode: 'full' });
    const ids: number[] = full.events.map(({ id }: Json) => id);
    expect(ids).toEqual(ids.map((_, index) => ids[0]! + index));
    expect(full.nextCursor).toBe(ids.at(-1)! + 1);
    const types = new Set(full.events.map(({ type }: Json) => type));
    expect(types).toEqual(new Set(['output', 'progress', 'result']));
    for (const { timestamp } of full.events) expect(Number.isNaN(Date.parse(timestamp))).toBe(false);
    const raw = JSON.stringify(full.events);
    expect(raw).toContain('"subtype":"init"');
    expect(raw).toContain('let me see');
    expect(full.result).toMatchObject({ usage: { output_tokens: 60 }, modelUsage: expect.any(Object) });

    const minimal = await check(h, { action: 'poll', sessionId, cursor: from });
    const toolUseID = expect.stringMatching(/^toolu_/);
    expect(minimal.events.map(({ data }: Json) => data)).toEqual([
      { text: 'I will say it.' },
      { tools: [{ name: 'Bash', toolUseID, summary: 'echo one' }] },
      { results: [{ toolName: 'Bash', toolUseID, head: 'one', chars: 3, isError: false }] },
      { tools: [{ name: 'Bash', toolUseID, summary: 'ls no-such-file' }] },
      {
        results: [
          {
            toolName: 'Bash',
            toolUseID,
            head: expect.stringContaining('no-such-file'),
            chars: expect.any(Number),
            isError: true,
            exitCode: 2,
          },
        ],
      },
      { text: 'Said.' },
    ]);
    expect(minimal.nextCursor).toBe(full.nextCursor);
    expect(minimal.result).not.toHaveProperty('usage');

    const middle = minimal.events[2].id;
    const rest = await check(h, { action: 'poll', sessionId, cursor: middle });
    expect(rest.events).toEqual(minimal.events.slice(2));
    expect((await check(h, { action: 'poll', sessionId, cursor: full.nextCursor })).events).toEqual([]);
    expect(full).toMatchObject({ lastEventId: ids.at(-1), lastToolUseId: expect.any(String) });
    const none = await check(h, { action: 'poll', sessionId, pollOptions: { includeEvents: false } });
    expect(none.nextCursor).toBe(full.nextCursor);
    expect(none).not.toHaveProperty('events');
  },
);

verifies(['check.max-events', 'check.max-bytes-moves-on'], async (variant) => {
  const h = await variant.share();
  h.model.on('talk').reply(
    echo('first'),
    reply()
      .text(`long ${'words '.repeat(500)}`)
      .tool('Bash', { command: 'echo 2' }),
    text('Said.'),
  );
  const { sessionId, from } = await turn(h, 'talk');
  const all = await pollAll(h, sessionId, {}, from);
  expect(all.length).toBeGreaterThan(4);

  const two = await check(h, { action: 'poll', sessionId, cursor: from, maxEvents: 2 });
  expect(two).toMatchObject({ truncated: true, truncatedFields: expect.arrayContaining(['events']) });
  expect(two.events).toEqual(all.slice(0, 2));
  expect(await pollAll(h, sessionId, { maxEvents: 2 }, from)).toEqual(all);

  for (const mode of ['minimal', 'full']) {
    const seen: number[] = [];
    for (let cursor = from, calls = 0; ; calls++) {
      expect(calls, 'the cursor does not advance').toBeLessThan(100);
      const page = await check(h, { action: 'poll', sessionId, cursor, responseMode: mode, maxBytes: 1 });
      if (page.events.length === 0) break;
      expect(page.events).toHaveLength(1);
      expect(page.truncatedFields).toContain('events');
      expect(page.nextCursor).toBeGreaterThan(cursor);
      seen.push(page.events[0].id);
      cursor = page.nextCursor;
    }
    if (mode === 'minimal') expect(seen).toEqual(all.map(({ id }) => id));
    else expect(seen.length).toBeGreaterThan(all.length);
  }
});

verifies('check.long-result', async (variant) => {
  const h = await variant.share();
  const long = Array.from({ length: 9_000 }, (_, index) => `line ${String(index)} é😀`).join('\n');
  h.model.on('tell all').reply(text(long));
  const { state: first } = await turn(h, 'tell all');
  expect(first).toMatchObject({ truncated: true, truncatedFields: ['result'] });
  expect(first.result.resultChars).toBe(long.length);
  expect(Buffer.byteLength(JSON.stringify(first))).toBeLessThanOrEqual(24_000);
  let read: string = first.result.result;
  for (let page = first; page.truncated === true;) {
    page = await check(h, { action: 'wait', sessionId: first.sessionId, pollOptions: { resultOffset: read.length } });
    expect(page.result.resultChars).toBe(long.length);
    expect(page.result.result).not.toBe('');
    read += String(page.result.result);
  }
  expect(read).toBe(long);
  const whole = await check(h, {
    action: 'poll',
    sessionId: first.sessionId,
    responseMode: 'full',
    includeEvents: false,
  });
  expect(whole.result.result).toBe(long);
});

verifies(['check.partial-merged', 'wait.session-cancelled'], async (variant) => {
  const h = await variant.share();
  const words = Array.from({ length: 300 }, (_, index) => `word${String(index)} `).join('');
  h.model.on('stream it').reply(text(words).chunks(100));
  const options = { prompt: 'stream it', waitMs: 40_000, advanced: { includePartialMessages: true } };
  const { sessionId } = await h.ok('claude_code', options);
  const events = await pollAll(h, sessionId, { responseMode: 'full' });
  const partial = events.filter(({ data }) => data.type === 'partial');
  expect(partial.map(({ data }) => data.text).join('')).toBe(words);
  expect(partial.length).toBeLessThan(5);

  const held = gate(text('done'));
  h.model.on('hold it').reply(held);
  await h.say(sessionId, 'hold it');
  await held.arrived;
  const waiting = check(h, { action: 'wait', sessionId });
  await h.ok('claude_code_session', { action: 'cancel', sessionId });
  expect(await waiting).toMatchObject({ status: 'cancelled', cancelledSource: 'caller' });
});

verifies('check.cursor-reset', async (variant) => {
  const h = await variant.start({ env: { CLAUDE_CODE_MCP_EVENT_BUFFER_SIZE: '10' } });
  h.model.on('work').reply(
    tool('Bash', { command: 'touch a.txt' }),
    ...['a', 'b', 'c'].map((name) => {
      const search = (extension: string) => ({ pattern: `${name}.${extension}` });
      return tool('Glob', search('js')).tool('Glob', search('ts')).tool('Glob', search('md'));
    }),
    text('done'),
  );
  const sessionId = await start(h, { prompt: 'work' });
  const before = await h.waitForRequest(sessionId).then(() => check(h, { action: 'poll', sessionId, cursor: 1 }));
  expect(before).not.toHaveProperty('cursorResetTo');
  await h.allow(sessionId);
  await h.waitUntilRest(sessionId);
  const full = { responseMode: 'full', action: 'poll', sessionId };
  const reset = await check(h, { ...full, cursor: 1 });
  expect(reset.cursorResetTo).toBe(reset.events[0].id);
  expect(reset.cursorResetTo).toBeGreaterThan(1);
  const types = reset.events.map(({ type }: Json) => type);
  expect(types).toEqual(expect.arrayContaining(['permission_request', 'permission_result', 'result']));
  expect(types.filter((type: string) => type === 'output' || type === 'progress').length).toBeLessThanOrEqual(10);
  expect(await check(h, { ...full, cursor: reset.events.at(-1).id })).not.toHaveProperty('cursorResetTo');
});

verifies(['check.include-switches', 'check.available-tools', 'check.result-fields'], async (variant) => {
  const h = await variant.share();
  h.model.on('make a file').reply(tool('Bash', { command: 'touch a.txt' }), text('done'));
  const before = h.conversation === undefined ? 0 : ((await h.look(h.conversation)).turns ?? 0);
  const { sessionId, from } = await turn(h, 'make a file');
  const quiet = await check(h, {
    action: 'poll',
    sessionId,
    pollOptions: { includeActions: false, includeEvents: false },
  });
  expect(quiet.status).toBe('waiting_permission');
  expect(quiet).not.toHaveProperty('actions');
  await h.allow(sessionId);
  await h.waitUntilRest(sessionId);

  const bare = await check(h, { action: 'poll', sessionId, cursor: from, includeResult: false });
  expect(bare).not.toHaveProperty('result');
  expect(bare).not.toHaveProperty('availableTools');
  expect(bare.events.some(({ type }: Json) => type === 'progress' || type === 'result')).toBe(false);
  const rich = await check(h, {
    action: 'wait',
    sessionId,
    cursor: from,
    pollOptions: {
      includeEvents: true,
      includeTools: true,
      includeUsage: true,
      includeModelUsage: true,
      includeTerminalEvents: true,
      includeProgressEvents: true,
    },
  });
  expect(rich.events.map(({ type }: Json) => type)).toEqual(expect.arrayContaining(['output', 'result']));
  expect(rich).toHaveProperty('nextCursor');
  expect(rich.availableTools).toEqual(
    expect.arrayContaining([{ name: 'Bash', category: 'execution', description: expect.any(String) }]),
  );
  expect(rich.result).toEqual({
    sessionId,
    result: 'done',
    isError: false,
    durationMs: expect.any(Number),
    durationApiMs: expect.any(Number),
    numTurns: 2,
    totalCostUsd: expect.any(Number),
    sessionTotalTurns: before + 2,
    sessionTotalCostUsd: expect.any(Number),
    stopReason: 'end_turn',
    usage: expect.objectContaining({ input_tokens: 200, output_tokens: 40 }),
    modelUsage: expect.any(Object),
    work: expect.objectContaining({ filesChanged: 0, commandsRun: 1, commandsFailed: 0, lastCheck: null }),
  });
});

verifies(
  'check.long-result',
  { when: 'and structured output that does not fit is left out until maxBytes allows it' },
  async (variant) => {
    const h = await variant.share();
    const answer = { words: 'word '.repeat(8_000) };
    const schema = { type: 'object', properties: { words: { type: 'string' } }, required: ['words'] };
    h.model.on('tell it').reply(tool('StructuredOutput', answer), text('told'));
    const asked = { prompt: 'tell it', outputFormat: { type: 'json_schema', schema }, waitMs: 40_000 };
    const cut = await h.ok('claude_code', asked);
    expect(cut).toMatchObject({ status: 'idle', truncated: true });
    expect(cut.truncatedFields).toContain('result.structuredOutput');
    expect(cut.result).not.toHaveProperty('structuredOutput');
    expect(Buffer.byteLength(JSON.stringify(cut))).toBeLessThanOrEqual(24_000);
    const { sessionId } = cut;
    const whole = await check(h, { action: 'wait', sessionId, pollOptions: { maxBytes: 200_000 } });
    expect(whole.result.structuredOutput).toEqual(answer);
    expect(whole).not.toHaveProperty('truncated');
  },
);

/** Far longer than these waits should take. */
const LONG_MS = 45_000;

verifies(['look.at-once', 'wait.time-up', 'wait.until-rest', 'wait.two-at-once'], async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.converse('say it');
  await held.arrived;
  expect(await h.look(sessionId)).toMatchObject({ status: 'running', answer: undefined, requests: [] });
  expect(await h.watch(sessionId, 50)).toMatchObject({ status: 'running', answer: undefined });

  const waits = [h.watch(sessionId), h.watch(sessionId)];
  // This answer comes after the server has begun both waits.
  await h.look(sessionId);
  held.release();
  for (const wait of waits) expect(await wait).toMatchObject({ status: 'rest', answer: 'done' });
});

// test/mcp/progress.test.ts shows that it comes every 5 s even if nothing changes.
verifies('wait.progress', async (variant) => {
  const h = await variant.share();
  const [first, last] = [gate(tool('Bash', { command: 'echo one', description: 'say one' })), gate(text('done'))];
  h.model.on('say it').reply(first, last);
  const sessionId = await h.converse('say it');
  await first.arrived;
  const seen: { progress: number; message?: string | undefined }[] = [];
  const waiting = h.ok(...h.dialect.watch(sessionId, LONG_MS), {
    onProgress: ({ progress, message }) => {
      seen.push({ progress, message });
      first.release();
      if (message?.startsWith('1 tool') === true) last.release();
    },
  });
  expect(h.dialect.view(await waiting)).toMatchObject({ status: 'rest', answer: 'done' });
  expect(seen.length).toBeGreaterThanOrEqual(2);
  const numbers = seen.map(({ progress }) => progress);
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(seen.map(({ message }) => message)).toContainEqual(expect.stringMatching(/^1 tool \(1 Bash\), now: /));
});

verifies('wait.client-cancels', async (variant) => {
  const h = await variant.share();
  const held = gate(text('done'));
  h.model.on('say it').reply(held);
  const sessionId = await h.converse('say it');
  await held.arrived;
  const controller = new AbortController();
  const waiting = h.call(...h.dialect.watch(sessionId, LONG_MS), {
    signal: controller.signal,
    onProgress: () => controller.abort(),
  });
  await expect(waiting).rejects.toThrow();
  expect(await h.look(sessionId)).toMatchObject({ status: 'running' });
  held.release();
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'done' });
});

verifies('wait.cheap', async (variant) => {
  const h = await variant.share();
  const file = join(h.project, 'source.ts');
  writeFileSync(
    file,
    Array.from({ length: 60 }, (_, line) => `export const value${String(line)} = ${String(line)};`).join('\n'),
  );
  const read = { file_path: file };
  const print = (step: number) => ({ command: `echo step ${String(step)}`, description: `Print step ${String(step)}` });
  const steps = Array.from({ length: 10 }, (_, index) =>
    tool('Read', read)
      .tool('Bash', print(2 * index))
      .tool('Read', read)
      .tool('Bash', print(2 * index + 1)),
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
