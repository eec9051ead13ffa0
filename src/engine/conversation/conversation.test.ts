import { expect, test } from 'vitest';
import { permissionAsk } from '../../../test/mcp/forms/open-request.ts';
import {
  heardAs,
  IDLE,
  resultEvent,
  RUNNING,
  STARTED,
  textEvent,
  type Said,
} from '../../../test/harness/agent-messages.ts';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import type { AgentSignal } from '../../driver/translate.ts';
import type { ConversationEvent } from './conversation-types.ts';
import { Conversation } from './conversation.ts';

const HELLO = { id: 'm1', text: 'hello' };
const EXIT = { code: null, signal: 'SIGKILL', stderr: '', error: undefined } as const;
/** Passed straight through; not what these tests are about. */
const STREAMED: ReadonlySet<ConversationEvent['kind']> = new Set(['changed', 'event', 'message', 'delivered']);

function setUp() {
  const clock = new ManualClock();
  const emitted: ConversationEvent['kind'][] = [];
  const conversation = new Conversation(
    {
      id: 'c',
      options: {},
      keepsRequests: false,
      permissionTimeoutMs: 0,
      eventLimits: { maxEvents: 100, maxBytes: 100_000 },
      inherited: undefined,
    },
    {
      clock,
      tell: ({ kind }) => {
        if (!STREAMED.has(kind)) emitted.push(kind);
      },
      debug: () => undefined,
    },
  );
  const hear = (...said: Said[]): void => {
    for (const each of said) conversation.heard(heardAs(each));
  };
  return { clock, conversation, emitted, hear };
}

/** A conversation in its first turn. */
function atWork() {
  const world = setUp();
  world.conversation.say(HELLO);
  world.hear(STARTED, RUNNING, { kind: 'delivery', messageId: 'm1', state: 'started' });
  return world;
}

test('a turn runs from a message to its answer', () => {
  const { conversation, hear, emitted } = setUp();
  conversation.say(HELLO);
  expect(conversation.state).toBe('starting');
  hear(STARTED, RUNNING);
  expect(conversation.state).toBe('running');
  hear(resultEvent());
  expect(conversation.atRest).toBe(false);
  hear(IDLE);
  expect(conversation).toMatchObject({ state: 'idle', result: { text: 'done' }, topic: 'hello' });
  expect(emitted).toEqual(['tools', 'rested']);
});

test('every message from Claude Code during a turn counts as activity; idle time starts at the end of the turn', () => {
  const { clock, conversation, hear } = atWork();
  clock.advance(60_000);
  hear(textEvent('still at it'));
  expect(conversation.times.lastActiveAt).toBe(60_000);
  clock.advance(1_000);
  hear(resultEvent(), IDLE);
  expect(conversation.times.lastActiveAt).toBe(61_000);
  clock.advance(60_000);
  hear(IDLE, { kind: 'background_tasks', count: 0 });
  expect(conversation.times.lastActiveAt).toBe(61_000);
  hear({ kind: 'background_tasks', count: 1 });
  expect(conversation.times.lastActiveAt).toBe(121_000);
});

test('an idle signal does not end the turn while a message is still unread', () => {
  const { conversation, hear } = atWork();
  hear(resultEvent());
  conversation.say({ id: 'm2', text: 'and more' });
  hear(IDLE);
  expect(conversation.atRest).toBe(false);
});

test('a turn that Claude Code starts by itself does not carry the previous answer', () => {
  const { conversation, hear } = atWork();
  hear(resultEvent(), IDLE);
  hear(RUNNING);
  expect(conversation).toMatchObject({ state: 'running', result: undefined });
});

test.each([
  ['becomes idle', 'idle', (world: ReturnType<typeof atWork>) => world.hear(resultEvent(), IDLE)],
  ['fails', 'error', (world) => world.hear(resultEvent({ isError: true }), IDLE)],
  ['is interrupted', 'interrupted', (world) => world.hear(resultEvent({ interrupted: true }), IDLE)],
  ['loses its process', 'error', (world) => void world.conversation.exited(EXIT, true)],
  ['cannot start a process', 'error', (world) => world.conversation.startFailed(new Error('no'), true)],
  ['is force-stopped', 'interrupted', (world) => world.conversation.stoppedByForce()],
  ['is stopped by the server', 'interrupted', (world) => void world.conversation.stop('too long', 'cleanup')],
  ['is cancelled', 'cancelled', (world) => void world.conversation.cancel('enough', 'caller', 'cancel')],
] as [string, string, (world: ReturnType<typeof atWork>) => void][])(
  'a conversation that %s settles its open requests and reports its end once',
  async (_how, state, end) => {
    const world = atWork();
    const call = { kind: 'tool_call' as const, toolUseId: 't1', toolName: 'Bash', input: {} };
    world.hear({ kind: 'message', role: 'assistant', blocks: [call] });
    const decision = world.conversation.asked(permissionAsk('Bash', { command: 'make' }));
    expect(world.conversation.state).toBe('waiting');
    end(world);
    expect(world.conversation).toMatchObject({ state, atRest: true, requests: { size: 0 } });
    expect(await decision).toMatchObject({ behavior: 'deny' });
    expect(world.conversation.activity.toolUses.map(({ status }) => status)).not.toContain('running');
    expect(world.emitted).toEqual(['tools', 'opened', 'asked', 'settled', 'rested']);
    end(world);
    expect(world.emitted.filter((kind) => kind === 'rested')).toHaveLength(1);
  },
);

test('a conversation stopped by the server gives the reason until its next message', () => {
  const { conversation, hear } = atWork();
  conversation.stop('it worked too long', 'cleanup');
  expect(conversation).toMatchObject({
    state: 'interrupted',
    cancellation: { reason: 'it worked too long', source: 'cleanup' },
    result: { isError: true, text: expect.stringContaining('it worked too long') },
  });
  conversation.say({ id: 'm2', text: 'go on' });
  hear(RUNNING, resultEvent(), IDLE);
  expect(conversation).toMatchObject({ state: 'idle', result: { text: 'done' } });
  expect(conversation.cancellation).toBeUndefined();
});

test('streaming text is available until the message is complete, and is not logged by default', () => {
  const { conversation, hear } = atWork();
  const written = (text: string): AgentSignal => ({ kind: 'streamed', messageId: undefined, text });
  hear({ kind: 'streamed', messageId: 'a', text: '' }, written('one '), written('two'));
  expect(conversation.unfinishedText).toBe('one two');
  expect(conversation.log.from(0).events.map(({ body }) => body.kind)).toEqual(['init', 'prompt']);
  hear(textEvent('one two three'));
  expect(conversation.unfinishedText).toBe('');
});

test('messages a dead process never read go to its successor, if there can be one', () => {
  const { conversation } = setUp();
  conversation.say(HELLO);
  expect(conversation.exited(EXIT, true)).toMatchObject([HELLO]);
  expect(conversation.atRest).toBe(false);
  expect(conversation.exited(EXIT, false)).toEqual([]);
  expect(conversation).toMatchObject({ state: 'error', result: { errorSubtype: 'process_exited' } });
  expect(conversation.result?.text).toContain('send again: "hello"');
});

test('a message that a process has started to read is not resent', () => {
  const { conversation, clock, hear } = atWork();
  clock.advance(1);
  hear(RUNNING);
  expect(conversation.exited(EXIT, true)).toEqual([]);
  expect(conversation.state).toBe('error');
});

test('an interrupt ends with the turn, or when the next queued message starts', () => {
  const { conversation, hear } = atWork();
  conversation.say({ id: 'm2', text: 'the other thing' });
  hear({ kind: 'delivery', messageId: 'm2', state: 'queued' });
  expect(conversation.interrupt()).toBe(true);
  expect(conversation.state).toBe('interrupting');
  const stopped = { isError: true, errorSubtype: 'error_during_execution' };
  hear(resultEvent(stopped, ['m1']));
  expect(conversation.state).toBe('running');
  hear({ kind: 'delivery', messageId: 'm2', state: 'started' });
  hear(resultEvent(), IDLE);
  expect(conversation.state).toBe('idle');
  expect(conversation.interrupt()).toBe(false);
});

test('a cancelled conversation accepts no messages and cannot be revived', () => {
  const { conversation, hear } = atWork();
  expect(conversation.cancel('enough', 'caller', 'cancel')).toBe(true);
  expect(() => conversation.say({ id: 'm2', text: 'wait' })).toThrow('cancelled');
  hear(RUNNING, resultEvent(), IDLE);
  expect(conversation.exited(EXIT, true)).toEqual([]);
  expect(conversation.state).toBe('cancelled');
  expect(conversation.cancellation).toMatchObject({ reason: 'enough', source: 'caller' });
});
