import { exitCodeOf, toolOutput } from '../../driver/translate.ts';
import type { EventLog, SessionEvent } from '../../engine/event-log.ts';

/** A block of a message that Claude Code sent, as far as tools are concerned. */
export interface Block {
  type?: unknown;
  text?: unknown;
  id?: unknown;
  name?: unknown;
  input?: unknown;
  tool_use_id?: unknown;
  content?: unknown;
  is_error?: unknown;
}

export interface ToolResult {
  toolUseID: string;
  output: string;
  isError: boolean;
  exitCode: number | undefined;
}

/** The blocks of an `output` event; a message that is mere text is one block. */
export function blocksOf({ type, data }: SessionEvent): Block[] {
  if (type !== 'output') return [];
  const content = (data as { message?: { content?: unknown } }).message?.content;
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? (content as Block[]) : [];
}

export function toolResultOf(block: Block): ToolResult | undefined {
  if (block.type !== 'tool_result' || typeof block.tool_use_id !== 'string') return undefined;
  const isError = block.is_error === true;
  const output = toolOutput(block.content);
  return { toolUseID: block.tool_use_id, output, isError, exitCode: exitCodeOf(output, isError) };
}

/** Results do not say which tool they are of. */
export function toolNamesIn(log: EventLog): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const event of log.newestFirst())
    for (const { type, id, name } of blocksOf(event))
      if (type === 'tool_use' && typeof id === 'string' && typeof name === 'string') names.set(id, name);
  return names;
}
