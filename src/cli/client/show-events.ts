import { oneLine, summarizeTool } from '../../engine/conversation/tool-summary.ts';
import { visibleLine, visibleText } from '../../mcp/forms/form.ts';
import type { ApiEvent } from '../../schema/api.ts';
import type { AgentResult, EventBody, MessageBlock } from '../../schema/events.ts';
import { counted } from '../../text/columns.ts';
import type { Paint } from '../terminal/terminal.ts';

/** Of a tool's output; all of it is in the dashboard. */
const OUTPUT_LINES = 4;
const LINE_CHARS = 200;

/** What happened, as lines for a terminal. Empty for what only machines care about. */
export function eventLines({ data }: ApiEvent, paint: Paint): string[] {
  switch (data.kind) {
    case 'message':
      return data.blocks.flatMap((block) => blockLines(block, data, paint));
    case 'prompt':
      return ['', ...indented(paint.cyan('>'), data.text).map(paint.bold)];
    case 'permission_request': {
      const { toolName, input } = data.request.ask;
      return [`  ${paint.yellow('?')} asks for ${visibleLine(toolName)} ${summarizeTool(toolName, input, LINE_CHARS)}`];
    }
    case 'permission_result': {
      const words = data.message === undefined ? '' : `: ${oneLine(data.message, LINE_CHARS)}`;
      const changed = data.input === undefined ? '' : ', with changes';
      return data.decision === 'allow'
        ? [`  ${paint.green('✓')} allowed by ${visibleLine(data.source)}${changed}`]
        : [`  ${paint.red('✗')} denied by ${visibleLine(data.source)}${words}`];
    }
    case 'result':
      return resultLines(data.result, paint);
    case 'error':
      return indented(paint.red('✗'), data.message);
    case 'retry':
      return [`  ${data.loginRefused ? paint.red('✗') : paint.dim('·')} ${oneLine(data.summary, LINE_CHARS)}`];
    case 'tool_refused':
      return [`  ${paint.red('✗')} ${oneLine(data.message, LINE_CHARS)}`];
    case 'writes_lost':
      return [`  ${paint.red('✗')} Claude Code could not save the whole transcript`];
    case 'apply':
    case 'discard':
      return [`  ${paint.dim('·')} ${data.kind}: ${visibleLine(data.outcome)}`];
    case 'rewind':
      return data.dryRun ? [] : [`  ${paint.dim('·')} rewind: ${counted(data.files.length, 'file')} restored`];
    case 'status':
      return data.permissionMode === undefined ? [] : [`  ${paint.dim('·')} mode is now ${data.permissionMode}`];
    case 'partial':
    case 'init':
    case 'background_tasks':
    case 'notice':
      return [];
  }
}

function blockLines(block: MessageBlock, message: Extract<EventBody, { kind: 'message' }>, paint: Paint): string[] {
  const nested = message.parentToolUseId === undefined ? '' : '  ';
  const shift = (lines: readonly string[]): string[] => lines.map((line) => nested + line);
  switch (block.kind) {
    case 'text':
      if (block.text.trim() === '' || message.role === 'user') return [];
      return shift(indented(paint.cyan('●'), block.text));
    case 'tool_call':
      return shift([
        `  ${paint.bold(visibleLine(block.toolName))} ${summarizeTool(block.toolName, block.input, LINE_CHARS)}`,
      ]);
    case 'tool_result':
      return shift(outputLines(block.output, block.isError, paint));
    case 'thinking':
    case 'other':
      return [];
  }
}

function outputLines(output: string, isError: boolean, paint: Paint): string[] {
  const lines = visibleText(output.trimEnd()).split('\n');
  if (output.trim() === '') return [];
  const shown = lines.slice(0, OUTPUT_LINES).map((line) => `    ${paint.dim(`│ ${line.slice(0, LINE_CHARS)}`)}`);
  const left = lines.length - shown.length;
  return [
    ...(isError ? [`    ${paint.red('failed')}`] : []),
    ...shown,
    ...(left > 0 ? [`    ${paint.dim(`│ … ${counted(left, 'more line')}`)}`] : []),
  ];
}

function resultLines(result: AgentResult, paint: Paint): string[] {
  const { isError, interrupted, numTurns, durationMs, errorSubtype, text } = result;
  const facts = [counted(numTurns, 'turn'), `${(durationMs / 1000).toFixed(1)} s`].join(', ');
  if (interrupted) return ['', `${paint.yellow('■')} interrupted (${facts})`];
  if (!isError) return ['', `${paint.green('■')} done (${facts})`];
  return ['', `${paint.red('■')} failed: ${oneLine(text === '' ? (errorSubtype ?? '') : text, LINE_CHARS)} (${facts})`];
}

/** A text with its first line behind a mark and the others below it, so that none can pass for a mark. */
export function indented(mark: string, text: string): string[] {
  const [first = '', ...rest] = visibleText(text.trimEnd()).split('\n');
  return [`${mark} ${first}`, ...rest.map((line) => `  ${line}`)];
}
