import type { SessionReading } from '../../engine/conversation/reading.ts';
import { shortenText } from '../../engine/conversation/shortening.ts';
import { summarizeTool } from '../../engine/conversation/tool-summary.ts';
import type { MessageRole } from '../../schema/enums.ts';
import type { EventBody, MessageBlock } from '../../schema/events.ts';
import { requestSummary } from '../../views/action-view.ts';

/** Enough of a tool's output to see what it was. */
const OUTPUT_CHARS = 2_000;

/** A readable conversation: what was said in full, what was done in short. */
export function transcriptText({ record, log }: SessionReading): string {
  const { events, resetTo } = log.from(1);
  const parts = events.flatMap(({ body }) => bodyText(body));
  const title = record.title === '' ? record.id : record.title;
  const dropped = resetTo === undefined ? [] : ['*The beginning is no longer kept.*'];
  return `${[`# ${title}`, ...dropped, ...parts].join('\n\n')}\n`;
}

function bodyText(body: EventBody): string[] {
  switch (body.kind) {
    case 'message':
      return body.blocks.flatMap((block) => blockText(block, body.role));
    case 'permission_request':
      return [`**Asks:** ${requestSummary(body.request)}`];
    case 'permission_result':
      return [`**${body.decision === 'allow' ? 'Allowed' : 'Denied'}** by ${body.source}: ${body.toolName}`];
    case 'error':
      return [`**Error:** ${body.message}`];
    default:
      // The result repeats the last message; the rest says nothing about the conversation.
      return [];
  }
}

function blockText(block: MessageBlock, role: MessageRole): string[] {
  switch (block.kind) {
    case 'text':
      return [`## ${role === 'user' ? 'User' : 'Claude'}\n\n${block.text}`];
    case 'tool_call':
      return [`**${block.toolName}** ${summarizeTool(block.toolName, block.input)}`];
    case 'tool_result':
      return [fenced(shortenText(block.output, OUTPUT_CHARS, block.output))];
    case 'thinking':
    case 'other':
      return [];
  }
}

/** A fence longer than any inside. */
function fenced(output: string): string {
  const longest = Math.max(2, ...[...output.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${output}\n${fence}`;
}
