import { oneLine, summarizeTool } from '../../engine/conversation/tool-summary.ts';
import { visibleLine, visibleText } from '../../mcp/forms/form.ts';
import type { ApiEvent, StreamMessages } from '../../schema/api-events.ts';
import { writtenWords } from '../../schema/enums.ts';
import type { AgentResult, EventBody, MessageBlock } from '../../schema/events.ts';
import { counted } from '../../text/columns.ts';
import type { Paint } from '../terminal/terminal.ts';
import { decidedBy } from './show-request.ts';

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
      const written = writtenWords(data.message);
      const words = written === '' ? '' : `: ${oneLine(written, LINE_CHARS)}`;
      const changed = data.input === undefined ? '' : ', with changes';
      return data.decision === 'allow'
        ? [`  ${paint.green('✓')} allowed ${decidedBy(data.source)}${changed}`]
        : [`  ${paint.red('✗')} denied ${decidedBy(data.source)}${words}`];
    }
    case 'repeated':
      return data.input === undefined
        ? []
        : [`  ${paint.green('✓')} runs as ${summarizeTool(data.toolName, data.input, LINE_CHARS)}`];
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
  // Whole: it may name the command that mends it.
  const why = text.trim() === '' ? (errorSubtype ?? '') : text;
  return ['', `${paint.red('■')} failed (${facts})`, ...(why === '' ? [] : indented(' ', why))];
}

/**
 * The text that Claude is writing: its lines are shown as they are completed, and not again when the whole text arrives.
 */
export class UnfinishedText {
  readonly #mark: string;
  #text = '';
  /** How many of its lines were shown. */
  #shown = 0;

  constructor(paint: Paint) {
    this.#mark = paint.cyan('●');
  }

  /** Takes what was added, and returns the lines that are complete now. */
  write({ at, text }: StreamMessages['writing']): string[] {
    // The next text has begun before the last one arrived: that one is shown first, and this one when it is complete.
    if (at !== this.#text.length && (at !== 0 || this.#shown > 0)) return [];
    this.#text = this.#text.slice(0, at) + text;
    return this.#unseen(indented(this.#mark, this.#text).slice(0, -1));
  }

  /** The end of the line that is being written. */
  lastLine(room: number): string {
    const line = visibleLine(this.#text.trimEnd().split('\n').at(-1) ?? '');
    return line.length > room ? `…${line.slice(1 - room)}` : line;
  }

  /** What is still to be shown of the lines of an event. */
  rest(event: ApiEvent, lines: readonly string[]): readonly string[] {
    const { data } = event;
    if (data.kind === 'message' && !isOwnText(data)) return lines;
    const known = indented(this.#mark, this.#text).slice(0, this.#shown);
    const isSame = data.kind === 'message' && known.every((line, at) => lines[at] === line);
    const rest = isSame ? lines.slice(this.#shown) : [...this.#interrupted(data), ...lines];
    this.#text = '';
    this.#shown = 0;
    return rest;
  }

  /** A text that ends with its turn has no message of its own. */
  #interrupted({ kind }: EventBody): string[] {
    return kind === 'result' && this.#text.trim() !== '' ? this.#unseen(indented(this.#mark, this.#text)) : [];
  }

  #unseen(lines: readonly string[]): string[] {
    const unseen = lines.slice(this.#shown);
    this.#shown = Math.max(this.#shown, lines.length);
    return unseen;
  }
}

function isOwnText({ role, parentToolUseId, blocks }: Extract<EventBody, { kind: 'message' }>): boolean {
  return role !== 'user' && parentToolUseId === undefined && blocks.some(({ kind }) => kind === 'text');
}

/** A text with its first line behind a mark and the others below it, so that none can pass for a mark. */
export function indented(mark: string, text: string): string[] {
  const [first = '', ...rest] = visibleText(text.trimEnd()).split('\n');
  return [`${mark} ${first}`, ...rest.map((line) => `  ${line}`)];
}
