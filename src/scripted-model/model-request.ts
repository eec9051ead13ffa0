/** What the model was sent, read once when a request arrives. */

import type { IncomingHttpHeaders } from 'node:http';
import { blocksOfType, fieldsList, stringOf, textBlocks, type Fields } from './content.ts';
import { textsOf, withoutReminders } from './written-texts.ts';

export interface ToolResult {
  readonly toolUseId: string;
  readonly text: string;
  readonly isError: boolean;
}

/** Requests that the CLI makes on its own, outside the conversation. */
export type AuxiliaryPurpose =
  'token-count' | 'title' | 'suggestion' | 'permission-check' | 'compaction' | 'progress-summary';

export interface ModelRequest {
  readonly id: string;
  readonly path: string;
  readonly model: string;
  readonly stream: boolean;
  readonly body: Fields;
  readonly headers: IncomingHttpHeaders;
  /** The Claude Code session that asks. A sub-agent asks under the id of its session. */
  readonly sessionId: string | undefined;
  /** The sub-agent that asks. */
  readonly agentId: string | undefined;
  /** What a person, an agent or a background task's notification wrote, oldest first. */
  readonly userTexts: readonly string[];
  readonly lastUserText: string;
  /** What the CLI added: the content of `<system-reminder>` blocks and of messages of role `system`. */
  readonly reminders: readonly string[];
  /** Results of the tools that the previous reply called, without reminders. */
  readonly toolResults: readonly ToolResult[];
  readonly system: string;
  /** Names of the tools that are offered. Deferred ones are only in the reminders. */
  readonly tools: readonly string[];
  readonly purpose: 'conversation' | AuxiliaryPurpose;
  /** Whether the CLI made the request on its own: such requests consume no script. */
  readonly auxiliary: boolean;
  readonly at: number;
}

export type UnclassifiedRequest = Omit<ModelRequest, 'purpose' | 'auxiliary'>;

export interface RawRequest {
  readonly id: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Fields;
}

export function readModelRequest({ id, path, headers, body }: RawRequest): UnclassifiedRequest {
  const messages = fieldsList(body['messages']);
  const { written, reminders } = textsOf(messages);
  return {
    id,
    path,
    headers,
    body,
    model: stringOf(body['model']),
    stream: body['stream'] === true,
    sessionId: headerOf(headers, 'x-claude-code-session-id'),
    agentId: headerOf(headers, 'x-claude-code-agent-id'),
    userTexts: written,
    lastUserText: written.at(-1) ?? '',
    reminders,
    toolResults: lastToolResults(messages),
    system: textBlocks(body['system']).join('\n'),
    tools: fieldsList(body['tools']).map((tool) => stringOf(tool['name'])),
    at: Date.now(),
  };
}

function lastToolResults(messages: readonly Fields[]): ToolResult[] {
  const last = messages.findLast((message) => message['role'] === 'user');
  return blocksOfType(last?.['content'], 'tool_result').map((block) => ({
    toolUseId: stringOf(block['tool_use_id']),
    text: withoutReminders(textBlocks(block['content']).join('\n')),
    isError: block['is_error'] === true,
  }));
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
