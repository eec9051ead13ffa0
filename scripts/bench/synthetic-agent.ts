/** A fake Claude Code that emits what the real one emits, so that only the engine is measured. */

import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { AgentLaunch, AgentListener, AgentProcess } from '../../src/driver/agent-process.ts';
import { translate } from '../../src/driver/translate.ts';
import { SystemClock } from '../../src/engine/clock.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { EngineServices } from '../../src/engine/ports.ts';

const USAGE = { input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
const TEXT = 'I will read the file first, then change the two lines that matter and run the tests. '.repeat(2);
const OUTPUT = 'export function add(a, b) {\n  return a + b;\n}\n'.repeat(8);

export interface TurnShape {
  /** Steps, each of a text, a tool call and its result. */
  readonly steps: number;
  /** Pieces of streamed text before each step. */
  readonly partials: number;
}

/** Messages per turn. */
export function messagesIn({ steps, partials }: TurnShape): number {
  return 2 + steps * (3 + (partials > 0 ? partials + 1 : 0)) + 2;
}

export class SyntheticAgent {
  readonly #listener: AgentListener;
  readonly #shape: TurnShape;
  readonly #sessionId: string;
  #turns = 0;
  #calls = 0;

  constructor({ sessionId }: AgentLaunch, listener: AgentListener, shape: TurnShape) {
    this.#listener = listener;
    this.#shape = shape;
    this.#sessionId = sessionId;
  }

  readonly pid = undefined;

  async models(): Promise<[]> {
    return [];
  }

  send(_text: string, messageId: string): void {
    setImmediate(() => this.#turn(messageId));
  }

  async stop(): Promise<void> {}

  #turn(messageId: string): void {
    this.#turns++;
    this.#emit({
      type: 'system',
      subtype: 'init',
      tools: ['Read', 'Edit', 'Bash'],
      model: 'synthetic',
      permissionMode: 'default',
      claude_code_version: '0',
      cwd: '/',
    });
    this.#emit({ type: 'system', subtype: 'session_state_changed', state: 'running' });
    for (let step = 0; step < this.#shape.steps; step++) this.#step();
    this.#emit({
      type: 'result',
      subtype: 'success',
      result: TEXT,
      is_error: false,
      num_turns: this.#shape.steps,
      total_cost_usd: this.#turns * 0.01,
      duration_ms: 1,
      duration_api_ms: 1,
      usage: USAGE,
      modelUsage: {},
      permission_denials: [],
      user_message_uuids: [messageId],
    });
    this.#emit({ type: 'system', subtype: 'session_state_changed', state: 'idle' });
  }

  #step(): void {
    const id = `toolu_${++this.#calls}`;
    if (this.#shape.partials > 0) {
      this.#emit({ type: 'stream_event', event: { type: 'message_start', message: { id: `msg_${this.#calls}` } } });
      for (let piece = 0; piece < this.#shape.partials; piece++) {
        this.#emit({
          type: 'stream_event',
          event: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a piece of text ' } },
        });
      }
    }
    const message = { id: `msg_${this.#calls}`, role: 'assistant', model: 'synthetic', usage: USAGE };
    this.#emit({ type: 'assistant', message: { ...message, content: [{ type: 'text', text: TEXT }] } });
    const call = { type: 'tool_use', id, name: 'Read', input: { file_path: `/project/src/file-${this.#calls}.ts` } };
    this.#emit({ type: 'assistant', message: { ...message, content: [call] } });
    const result = { type: 'tool_result', tool_use_id: id, content: OUTPUT };
    this.#emit({ type: 'user', message: { role: 'user', content: [result] } });
  }

  #emit(message: object): void {
    const whole = {
      ...message,
      session_id: this.#sessionId,
      uuid: `${this.#sessionId}-${this.#calls}`,
      parent_tool_use_id: null,
    };
    // Parsed from JSON like real messages, so that equal texts in two messages are separate strings.
    this.#listener.onMessage(translate(JSON.parse(JSON.stringify(whole)) as SDKMessage));
  }
}

/** The real engine with synthetic agents; the given services replace its own. */
export function syntheticEngine(
  shape: TurnShape,
  argv: readonly string[] = [],
  services: Partial<EngineServices> = {},
): Engine {
  const cwd = process.cwd();
  const host = { env: {}, cwd, homedir: cwd, platform: process.platform };
  return new Engine(loadSettings({ ...host, argv }), cwd, {
    clock: new SystemClock(),
    driver: {
      launch: async (launch, listener) => new SyntheticAgent(launch, listener, shape) as unknown as AgentProcess,
    },
    transcripts: {
      find: async () => undefined,
      salvage: () => Promise.resolve(true),
      mentions: async () => true,
      isProjectWrittenSince: async () => true,
      lastCostUsd: async () => 0,
      tally: async () => ({ turns: 0, hasUnwrittenCost: false }),
      list: async () => [],
      lock: async () => ({ release: async () => undefined }),
      findHolder: async () => undefined,
    },
    audit: { record: () => undefined },
    configDir: '',
    isTrusted: () => Promise.resolve(true),
    baseEnv: {},
    log: () => undefined,
    ...services,
  });
}
