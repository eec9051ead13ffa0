/** A reply in the Messages API's format: a complete message, or the events of its stream. */

import { randomUUID } from 'node:crypto';
import type { Block, MessageReply, StopReason, Usage } from './reply.ts';

type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: Readonly<Record<string, unknown>>;
    };

export interface Message {
  readonly id: string;
  readonly type: 'message';
  readonly role: 'assistant';
  readonly model: string;
  readonly content: readonly ContentBlock[];
  readonly stop_reason: StopReason;
  readonly stop_sequence: null;
  readonly usage: Usage;
}

export interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

export function messageOf({ parts }: MessageReply, askedModel: string): Message {
  const callsTools = parts.blocks.some((block) => block.type === 'tool_use');
  return {
    id: `msg_${uniqueId()}`,
    type: 'message',
    role: 'assistant',
    model: parts.model ?? askedModel,
    content: parts.blocks.map(contentBlock),
    stop_reason: parts.stopReason ?? (callsTools ? 'tool_use' : 'end_turn'),
    stop_sequence: null,
    usage: parts.usage,
  };
}

export function eventsOf(message: Message, chunkCount: number): StreamEvent[] {
  const { usage, stop_reason, stop_sequence } = message;
  const opening = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    { type: 'message_start', message: opening },
    ...message.content.flatMap((block, index) => blockEvents(block, index, chunkCount)),
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
    { type: 'message_stop' },
  ];
}

export function encodeEvent(event: StreamEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function blockEvents(block: ContentBlock, index: number, chunkCount: number): StreamEvent[] {
  return [
    { type: 'content_block_start', index, content_block: emptied(block) },
    ...deltas(block, chunkCount).map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

function emptied(block: ContentBlock): ContentBlock {
  switch (block.type) {
    case 'text':
      return { ...block, text: '' };
    case 'thinking':
      return { ...block, thinking: '', signature: '' };
    case 'tool_use':
      return { ...block, input: {} };
  }
}

function deltas(block: ContentBlock, chunkCount: number): Record<string, string>[] {
  switch (block.type) {
    case 'text':
      return split(block.text, chunkCount).map((text) => ({ type: 'text_delta', text }));
    case 'thinking':
      return [
        ...split(block.thinking, chunkCount).map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: block.signature },
      ];
    case 'tool_use':
      return [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }];
  }
}

function contentBlock(block: Block): ContentBlock {
  switch (block.type) {
    case 'text':
      return block;
    case 'thinking':
      return { ...block, signature: `sig_${uniqueId()}` };
    case 'tool_use':
      return { type: 'tool_use', id: `toolu_${uniqueId()}`, name: block.name, input: block.input };
  }
}

/** By code points: a delta with half a surrogate pair is not valid UTF-8. */
function split(whole: string, count: number): string[] {
  const points = Array.from(whole);
  const size = Math.max(1, Math.ceil(points.length / Math.max(1, count)));
  const pieces: string[] = [];
  for (let start = 0; start < points.length; start += size) pieces.push(points.slice(start, start + size).join(''));
  return pieces;
}

/** Unique beyond this server: a resumed transcript holds ids of the one before. */
function uniqueId(): string {
  return randomUUID().replaceAll('-', '');
}
