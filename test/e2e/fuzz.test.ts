import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/errors/errors.ts';
import { text } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { RawClient } from '../harness/raw-client.ts';
import { DIALECTS, TOOLSETS, type ToolCall, type Toolset } from '../harness/toolsets.ts';

/** 10,000 cases in all. */
const BATCH = { minLength: 25, maxLength: 25 };
const TOOL_RUNS: Readonly<Record<Toolset, number>> = { compact: 170, explicit: 90 };
const FRAME_RUNS = 80;
const STATUS_RUNS = 30;

const STATUS_TOOL: Readonly<Record<Toolset, string>> = { compact: 'claude_code_check', explicit: 'claude_get_status' };

/** Set to a directory that does not exist, so that arguments that happen to be valid start no session. */
const DIRECTORY_OF: Readonly<Record<string, string>> = {
  claude_code: 'cwd',
  claude_create_session: 'workingDirectory',
};
const NOWHERE = '/no/such/directory';

const names = fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '', '0', 'then');
const deep = fc.constantFrom(2, 100, 5_000, 100_000).map((depth) => nested(depth));
const long = fc.constantFrom(1_000, 100_000).map((length) => 'm'.repeat(length));

/** Any JSON value. */
const json: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 24, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  {
    weight: 6,
    arbitrary: fc.constantFrom(null, '', ' ', 0, -1, 1e308, 2 ** 53, 0.5, true, false, [], {}, '\u0000', '\ud800'),
  },
  { weight: 4, arbitrary: fc.dictionary(names, fc.jsonValue({ maxDepth: 1 })) },
  { weight: 1, arbitrary: deep },
  { weight: 1, arbitrary: long },
);

function nested(depth: number): Raw {
  return new Raw(`${'['.repeat(depth)}${']'.repeat(depth)}`);
}

/** JSON as it is written on the wire, for what is nested too deeply for JSON.stringify. */
class Raw {
  readonly json: string;

  constructor(text: string) {
    this.json = text;
  }
}

function write(value: unknown): string {
  if (value instanceof Raw) return value.json;
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  return `{${Object.entries(value)
    .map(([name, item]) => `${JSON.stringify(name)}:${write(item)}`)
    .join(',')}}`;
}

interface ToolSchema {
  readonly name: string;
  readonly inputSchema: Json;
}

/** Values that more or less fit a parameter's schema, and values that do not at all. */
function valueFor(schema: Json): fc.Arbitrary<unknown> {
  const fitting: fc.Arbitrary<unknown>[] = [];
  if (Array.isArray(schema.enum)) fitting.push(fc.constantFrom(...schema.enum));
  for (const type of [schema.type].flat()) {
    if (type === 'string') fitting.push(fc.string(), fc.uuid(), fc.constant('word'));
    if (type === 'integer' || type === 'number') fitting.push(fc.integer(), fc.nat(1000));
    if (type === 'boolean') fitting.push(fc.boolean());
    if (type === 'array') fitting.push(fc.array(fc.oneof(fc.string(), json), { maxLength: 4 }));
    if (type === 'object') fitting.push(objectFor(schema));
  }
  return fitting.length === 0
    ? json
    : fc.oneof({ weight: 3, arbitrary: fc.oneof(...fitting) }, { weight: 1, arbitrary: json });
}

/** Usually the required parameters, a few of the others, and now and then strange names. */
function objectFor(schema: Json): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  const required = properties.filter(([name]) => (schema.required ?? []).includes(name));
  const some = fc.array(fc.oneof(fc.tuple(names, json), ...properties.map(parameter)), { maxLength: 5 });
  return fc
    .tuple(fc.tuple(...required.map(parameter)), fc.integer({ min: 0, max: 9 }), some)
    .map(([needed, dice, others]) => Object.fromEntries([...(dice > 0 ? needed : []), ...others]) as unknown);
}

function parameter([name, schema]: [string, Json]): fc.Arbitrary<[string, unknown]> {
  return valueFor(schema).map((value) => [name, value]);
}

/** Arbitrary arguments, except that they cannot start a session. */
function argumentsFor({ name, inputSchema }: ToolSchema): fc.Arbitrary<unknown> {
  const directory = DIRECTORY_OF[name];
  const harmless = (args: unknown): unknown =>
    directory === undefined || typeof args !== 'object' || args === null || Array.isArray(args) || args instanceof Raw
      ? args
      : { ...args, [directory]: NOWHERE };
  const fits = objectFor(inputSchema);
  return fc.oneof({ weight: 9, arbitrary: fits }, { weight: 1, arbitrary: json }).map(harmless);
}

/** The sessions that the server knows. */
const LIST: Readonly<Record<Toolset, ToolCall>> = {
  compact: ['claude_code_session', { action: 'list' }],
  explicit: ['claude_list_sessions', {}],
};

interface Target {
  readonly client: RawClient;
  readonly sessionId: string;
  readonly tools: readonly ToolSchema[];
  /** Expects the same sessions in the same state, and the same processes, as before. */
  expectUnchanged(): Promise<void>;
}

async function openTarget(h: Harness): Promise<Target> {
  const { toolset } = h;
  const client = new RawClient(h.server);
  await client.initialize();
  h.model.on('be there').reply(text('here I am'));
  const call = async ([name, args]: ToolCall): Promise<Json> => {
    const { result } = await client.request('tools/call', { name, arguments: args });
    return result.structuredContent;
  };
  const { start, look, view } = DIALECTS[toolset];
  const { sessionId } = await call(start('be there', { cwd: h.project }));
  await eventually(async () => view(await call(look(sessionId))).status === 'rest', { what: 'the session is at rest' });
  const stateNow = async (): Promise<unknown> => ({
    sessions: (await call(LIST[toolset])).sessions,
    session: await call(look(sessionId)),
    pids: (await h.processes()).map(({ pid }) => pid).sort((a, b) => a - b),
  });
  const before = await stateNow();
  const { result } = await client.request('tools/list', {});
  return {
    client,
    sessionId,
    tools: result.tools,
    async expectUnchanged() {
      expect(await stateNow()).toEqual(before);
    },
  };
}

function expectAnswer(answer: Json, frame: string): void {
  const shown = frame.slice(0, 500);
  if (answer.error !== undefined) {
    expect(answer.error, shown).toMatchObject({ code: expect.any(Number), message: expect.any(String) });
    return;
  }
  const { isError, content } = answer.result;
  const said = JSON.parse(content[0].text);
  if (isError !== true) return;
  const [, code] = /^Error \[([A-Z_]+)\]: ./s.exec(said.error) ?? [];
  expect(Object.keys(ERRORS), shown).toContain(code);
  // A mistake of the caller is not an internal error.
  expect(code, `${shown} was answered by ${said.error}`).not.toBe('INTERNAL');
}

describe.each(TOOLSETS)('bad input to the %s tools is answered, and changes nothing', (toolset) => {
  const harness = shareHarness({ connect: false, toolset });
  let server: Target;
  beforeAll(async () => {
    server = await openTarget(harness());
  }, 60_000);

  test('arguments of every tool', { timeout: 240_000 }, async () => {
    const { client, sessionId, tools, expectUnchanged } = server;
    const expectAnswers = async (calls: readonly string[]): Promise<void> => {
      const answers = await Promise.all(calls.map((params) => client.requestRaw('tools/call', params)));
      answers.forEach((answer, index) => expectAnswer(answer, calls[index] ?? ''));
    };
    const call = fc.oneof(
      ...tools.map((tool) => argumentsFor(tool).map((args) => `{"name":"${tool.name}","arguments":${write(args)}}`)),
    );
    await fc.assert(fc.asyncProperty(fc.array(call, BATCH), expectAnswers), { numRuns: TOOL_RUNS[toolset] });
    await expectUnchanged();

    // Arbitrary status calls about a session that exists.
    const name = STATUS_TOOL[toolset];
    const look = argumentsFor(tools.find((tool) => tool.name === name)!).map((given) => {
      const args = { ...(typeof given === 'object' && !(given instanceof Raw) && given), sessionId };
      return `{"name":"${name}","arguments":${write(args)}}`;
    });
    await fc.assert(fc.asyncProperty(fc.array(look, BATCH), expectAnswers), { numRuns: STATUS_RUNS });
    await expectUnchanged();
  });

  // Frames are parsed before the toolset matters.
  if (toolset === 'explicit') return;

  test('malformed and strange frames', { timeout: 240_000 }, async () => {
    const { client, expectUnchanged } = server;
    await fc.assert(
      fc.asyncProperty(fc.array(frame, BATCH), async (frames) => {
        for (const sent of frames) await client.send(sent);
        expect((await client.request('ping', {})).result).toEqual({});
      }),
      { numRuns: FRAME_RUNS },
    );
    await expectUnchanged();
  });

  test('frames that are not JSON-RPC, huge frames, and two requests with the same id', async () => {
    const { client, expectUnchanged } = server;
    const before = client.refusals.length;
    // Refused, under its id if it has one.
    expect((await client.requestRaw('tools/call', '7')).error).toMatchObject({ code: expect.any(Number) });
    expect((await client.requestRaw('tools/call', '{},"jsonrpc":"1.0"')).error).toMatchObject({ code: -32600 });
    await client.send('{"jsonrpc":');
    await client.send('[1,2]');
    const refusals = (): Json[] => client.refusals.slice(before);
    await eventually(() => refusals().length >= 2, { what: 'both frames are refused' });
    expect(refusals().map(({ error }) => error.code)).toEqual([-32700, -32600]);

    const prompt = 'm'.repeat(20_000_000);
    const answer = await client.request('tools/call', { name: 'claude_code', arguments: { prompt, cwd: NOWHERE } });
    expect(answer.result.structuredContent.error).toMatch(/^Error \[INVALID_ARGUMENT\]: .*cwd/);
    // Over the limit: skipped with an error.
    await client.send(Buffer.alloc(65 * 1024 * 1024, 'm'));
    await eventually(() => refusals().some(({ error }) => /bytes/.test(error.message)), {
      what: 'the oversized frame is refused',
    });
    const twice = { jsonrpc: '2.0', id: 'same', method: 'tools/list' };
    await client.send(`${JSON.stringify(twice)}\n${JSON.stringify(twice)}`);
    await expectUnchanged();
  });

  test('garbage before the handshake', async () => {
    const h = await startHarness({ connect: false });
    const client = new RawClient(h.server);
    for (const garbage of fc.sample(bytes, 50)) await client.send(garbage);
    expect((await client.initialize()).result.serverInfo).toMatchObject({ name: 'claude-code-mcp' });
  });
});

/** Without newlines, which would split the frame. */
const bytes = fc
  .uint8Array({ minLength: 0, maxLength: 200 })
  .map((values) => values.map((value) => (value === 0x0a ? 0x0b : value)));

const id = fc.oneof(fc.constantFrom(1, '1', 0, -1, 1.5, null, '', 'same', 2 ** 60), json);
const method = fc.oneof(
  fc.constantFrom('tools/call', 'tools/list', 'ping', 'initialize', 'server/discover', 'resources/list', 'prompts/get'),
  fc.constantFrom('notifications/cancelled', 'notifications/progress', 'notifications/initialized', 'logging/setLevel'),
  names,
  fc.string(),
);
const params = fc.oneof(
  json,
  fc.record(
    {
      name: fc.oneof(fc.constantFrom('claude_code_check', 'claude_code_reply', 'claude_code_session'), names, json),
      arguments: json,
      _meta: fc.oneof(json, fc.record({ progressToken: json })),
      requestId: id,
      reason: json,
      protocolVersion: json,
    },
    { requiredKeys: [] },
  ),
);
const envelope = fc
  .record(
    {
      jsonrpc: fc.oneof({ weight: 4, arbitrary: fc.constant('2.0') }, { weight: 1, arbitrary: json }),
      id,
      method,
      params,
      result: json,
      error: json,
    },
    { requiredKeys: [] },
  )
  .map(write);

const frame: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  { weight: 6, arbitrary: envelope },
  { weight: 1, arbitrary: fc.array(envelope, { maxLength: 3 }).map((batch) => `[${batch.join(',')}]`) },
  { weight: 1, arbitrary: json.map(write) },
  { weight: 1, arbitrary: fc.string().map((garbage) => garbage.replaceAll('\n', ' ')) },
  { weight: 1, arbitrary: bytes },
  { weight: 1, arbitrary: fc.constant('{"jsonrpc":"2.0","id":7,"id":8,"method":"ping","method":"tools/list"}') },
  { weight: 1, arbitrary: envelope.map((whole) => whole.slice(0, Math.floor(whole.length / 2))) },
);
