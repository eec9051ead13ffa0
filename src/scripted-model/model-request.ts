/** What the model was sent, read once when a request arrives. */

import type { IncomingHttpHeaders } from 'node:http';

/** Reads the loosely typed JSON of a request's body. */

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsList(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The texts of a message, a tool result or a system prompt: each may be a string or a list of blocks. */
function textBlocks(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return blocksOfType(content, 'text').map((block) => stringOf(block['text']));
}

function blocksOfType(content: unknown, type: string): Fields[] {
  return fieldsList(content).filter((block) => block['type'] === type);
}

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

export interface Texts {
  /** By a person, by an agent, or the notification of a background task. */
  readonly written: string[];
  readonly reminders: string[];
}

/**
 * Separates what someone wrote from what the CLI put around it, which it does in three ways: in `<system-reminder>`
 * blocks of user messages, in such blocks at the end of tool results (older models), and as messages of role `system`
 * (models since 5). A prompt that was sent while a turn ran, and the notification of a background task, are only found
 * inside such injected text.
 */
function textsOf(messages: readonly Fields[]): Texts {
  const texts: Texts = { written: [], reminders: [] };
  for (const message of messages) {
    if (message['role'] === 'system') textBlocks(message['content']).forEach((text) => addReminder(texts, text));
    else if (message['role'] === 'user') addUserMessage(texts, message['content']);
  }
  return texts;
}

function withoutReminders(text: string): string {
  return text.replace(REMINDER, '').trim();
}

const REMINDER = /<system-reminder>([\s\S]*?)<\/system-reminder>/g;

const RELAYED =
  /<task-notification>[\s\S]*?<\/task-notification>|The user sent a new message while you were working:\n([\s\S]*?)\n\nThis is how Claude Code surfaces/g;

function addUserMessage(texts: Texts, content: unknown): void {
  for (const result of blocksOfType(content, 'tool_result')) {
    for (const text of textBlocks(result['content'])) addReminders(texts, text);
  }
  for (const text of textBlocks(content)) {
    addReminders(texts, text);
    const written = withoutReminders(text);
    if (written !== '') texts.written.push(written);
  }
}

function addReminders(texts: Texts, text: string): void {
  for (const [, reminder = ''] of text.matchAll(REMINDER)) addReminder(texts, reminder.trim());
}

function addReminder(texts: Texts, reminder: string): void {
  texts.reminders.push(reminder);
  for (const [notification, prompt] of reminder.matchAll(RELAYED)) texts.written.push(prompt ?? notification);
}
