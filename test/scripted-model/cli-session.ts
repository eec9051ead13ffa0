/** Sessions of the real CLI against a scripted model; each bench has its own home. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  query,
  type Options,
  type Query,
  type SDKMessage,
  type SDKResultMessage,
  type SDKUserMessage,
} from '@anthropic-ai/claude-agent-sdk';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import {
  startScriptedModel,
  type ScriptedModel,
  type ScriptedModelOptions,
} from '../../src/scripted-model/scripted-model.ts';
import { SHORT_LIFE } from '../harness/isolated-home.ts';

export interface Bench {
  readonly model: ScriptedModel;
  readonly home: string;
  start(prompt: string | Prompts, options?: Options): Query;
  /** Runs to the end. Returns an error result too, although the SDK throws after it. */
  run(prompt: string | Prompts, options?: Options): Promise<Transcript>;
  /** One CLI process for several turns. */
  converse(options?: Options): Conversation;
  close(): Promise<void>;
}

export interface Conversation {
  readonly session: Query;
  /** For a prompt in the middle of a turn. */
  readonly prompts: Prompts;
  /** Runs one turn to its result. */
  say(prompt: string, onMessage?: (message: SDKMessage) => void): Promise<Transcript>;
}

export interface Transcript {
  readonly messages: readonly SDKMessage[];
  readonly result: SDKResultMessage;
}

export async function openBench(modelOptions: ScriptedModelOptions = {}): Promise<Bench> {
  const bench = await makeBench(modelOptions);
  onTestFinished(() => bench.close());
  return bench;
}

/** One conversation for all tests of a block: a turn costs a tenth of a start. Each test needs its own prompts. */
export function shareConversation(options?: Options): () => Bench & Conversation {
  let shared: (Bench & Conversation) | undefined;
  beforeAll(async () => {
    const bench = await makeBench({});
    shared = { ...bench, ...bench.converse(options) };
  });
  afterAll(() => shared?.close());
  return () => {
    if (!shared) throw new Error('The shared conversation is only available inside tests');
    return shared;
  };
}

async function makeBench(modelOptions: ScriptedModelOptions): Promise<Bench> {
  const home = await mkdtemp(join(tmpdir(), 'scripted-model-'));
  const model = await startScriptedModel(modelOptions);
  const sessions: Query[] = [];
  const start: Bench['start'] = (prompt, options = {}) => {
    const session = query({
      prompt,
      options: {
        cwd: home,
        permissionMode: 'bypassPermissions',
        allowDangerouslySkipPermissions: true,
        ...options,
        env: {
          PATH: process.env['PATH'],
          HOME: home,
          CLAUDE_CONFIG_DIR: join(home, '.claude'),
          ...model.env(),
          ...SHORT_LIFE,
          ...options.env,
        },
      },
    });
    sessions.push(session);
    return session;
  };

  return {
    model,
    home,
    start,
    run: (prompt, options) => collect(start(prompt, options)),
    converse(options) {
      const prompts = new Prompts();
      const session = start(prompts, options);
      const say: Conversation['say'] = (prompt, onMessage) => {
        prompts.say(prompt);
        return turnOf(session, onMessage);
      };
      return { session, prompts, say };
    },
    async close() {
      for (const session of sessions) session.close();
      await model.close();
      // The CLI may still write files while it exits.
      await rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** Reads up to the next result. */
export async function turnOf(session: Query, onMessage?: (message: SDKMessage) => void): Promise<Transcript> {
  const messages: SDKMessage[] = [];
  for (;;) {
    const { value, done } = await session.next();
    if (done === true) throw new Error('the session ended without a result');
    messages.push(value);
    onMessage?.(value);
    if (value.type === 'result') return { messages, result: value };
  }
}

export async function collect(session: Query, onMessage?: (message: SDKMessage) => void): Promise<Transcript> {
  const messages: SDKMessage[] = [];
  try {
    for await (const message of session) {
      messages.push(message);
      onMessage?.(message);
    }
  } catch (error) {
    if (!messages.some((message) => message.type === 'result')) throw error;
  }
  const result = messages.findLast((message) => message.type === 'result');
  if (result === undefined) throw new Error('the session ended without a result');
  return { messages, result };
}

/** Streaming input: the CLI keeps running until `end()`. */
export class Prompts implements AsyncIterable<SDKUserMessage> {
  readonly #waiting: SDKUserMessage[] = [];
  #ended = false;
  #wake: () => void = () => undefined;

  say(text: string): this {
    this.#waiting.push({ type: 'user', message: { role: 'user', content: text }, parent_tool_use_id: null });
    this.#wake();
    return this;
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<SDKUserMessage> {
    while (true) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
