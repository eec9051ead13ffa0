/**
 * Separates what someone wrote from what the CLI put around it.
 *
 * The CLI injects text in three ways: in `<system-reminder>` blocks of user messages, in such blocks at the end of
 * tool results (older models), and as messages of role `system` (models since 5). A prompt that was sent while a
 * turn ran, and the notification of a background task, are only found inside such injected text.
 */

import { blocksOfType, textBlocks, type Fields } from './content.ts';

export interface Texts {
  /** By a person, by an agent, or the notification of a background task. */
  readonly written: string[];
  readonly reminders: string[];
}

export function textsOf(messages: readonly Fields[]): Texts {
  const texts: Texts = { written: [], reminders: [] };
  for (const message of messages) {
    if (message['role'] === 'system') textBlocks(message['content']).forEach((text) => addReminder(texts, text));
    else if (message['role'] === 'user') addUserMessage(texts, message['content']);
  }
  return texts;
}

export function withoutReminders(text: string): string {
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
