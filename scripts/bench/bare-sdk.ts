/** The bare Agent SDK, with which the server is compared. */

import { query, type Options, type Query, type SDKUserMessage } from '@anthropic-ai/claude-agent-sdk';
import { randomUUID } from 'node:crypto';
import { InputQueue } from '../../src/driver/sdk-options.ts';

export interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** To do the same work, it needs the same options: Claude Code's own prompt, its default mode, and answers to requests. */
const sameOptions = {
  systemPrompt: { type: 'preset', preset: 'claude_code' },
  permissionMode: 'default',
  canUseTool: async () => ({ behavior: 'deny', message: 'Nothing is asked in a benchmark.' }),
} as const satisfies Options;

/** One conversation with streaming input, one turn after another. */
export class BareSession {
  readonly id = randomUUID();
  readonly #input = new InputQueue();
  readonly #query: Query;
  readonly #messages: AsyncIterator<{ type: string }>;

  constructor({ cwd, env }: Place, options: Options = {}) {
    const prompt: AsyncIterable<SDKUserMessage> = this.#input;
    this.#query = query({ prompt, options: { cwd, env: { ...env }, ...sameOptions, sessionId: this.id, ...options } });
    this.#messages = this.#query[Symbol.asyncIterator]();
  }

  async turn(text: string): Promise<void> {
    this.#input.push(text, randomUUID());
    await untilResult(this.#messages);
  }

  close(): void {
    this.#input.end();
    this.#query.close();
  }
}

/** A turn that pays for its own process, as in servers that do not keep one. */
export async function resumedTurn(sessionId: string, text: string, { cwd, env }: Place): Promise<void> {
  const resumed = query({ prompt: text, options: { cwd, env: { ...env }, ...sameOptions, resume: sessionId } });
  try {
    await untilResult(resumed[Symbol.asyncIterator]());
  } finally {
    resumed.close();
  }
}

async function untilResult(messages: AsyncIterator<{ type: string }>): Promise<void> {
  for (;;) {
    const next = await messages.next();
    if (next.done === true) throw new Error('The SDK ended before its result');
    if (next.value.type === 'result') return;
  }
}
