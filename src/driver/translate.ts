import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import type { EventBody, FileEdit, MessageBlock, MessageBody, Original, AgentResult } from '../schema/events.ts';
import { isObject } from '../schema/json.ts';
import { onlyBundledProgram } from './claude-code-program.ts';

/** A file's contents before a tool wrote it, as Claude Code reports them: line endings normalised, omitted if long. */
export type FileBefore = { kind: 'absent' } | { kind: 'text'; text: string } | { kind: 'unknown' };

/** How far Claude Code has got with a message. */
export type DeliveryState = 'queued' | 'started' | 'ended' | 'withdrawn';

/** What the engine must know about a message immediately, and no one afterwards. */
export type AgentSignal =
  | { kind: 'state'; state: 'running' | 'requires_action' | 'idle' }
  | { kind: 'delivery'; messageId: string; state: DeliveryState }
  /** By one of Claude Code's own tools. */
  | { kind: 'file_written'; path: string; before: FileBefore }
  | { kind: 'file_edited'; toolUseId: string; edit: FileEdit }
  /** A message starts, or continues with a piece. */
  | { kind: 'streamed'; messageId: string | undefined; text: string };

/** What one Claude Code message becomes: at most one event for the log, and any number of signals. */
export interface Translation {
  event: { body: EventBody; original?: Original } | undefined;
  signals: AgentSignal[];
}

type Assistant = Extract<SDKMessage, { type: 'assistant' }>;
type User = Extract<SDKMessage, { type: 'user' }>;
type System = Extract<SDKMessage, { type: 'system' }>;
type Partial = Extract<SDKMessage, { type: 'stream_event' }>;
type Result = Extract<SDKMessage, { type: 'result' }>;

/** The only place where a Claude Code message becomes an event and signals. An unknown message is a notice. */
export function translate(message: SDKMessage): Translation {
  // Most messages are pieces of text, if requested.
  const body = message.type === 'stream_event' ? undefined : bodyOf(message);
  return { event: body && { body, original: { message: shownMessage(message) } }, signals: signalsOf(message) };
}

/**
 * The event in a message, the same whenever it is derived: the log keeps only the message. Another version's message
 * may lack fields that ours has: then it is a notice.
 */
export function bodyOf(message: unknown): EventBody | undefined {
  if (!isObject(message)) return undefined;
  try {
    return declaredBody(message as unknown as SDKMessage);
  } catch {
    return noticeBody(message);
  }
}

function signalsOf(message: SDKMessage): AgentSignal[] {
  try {
    return declaredSignals(message);
  } catch {
    return [];
  }
}

/** Numbers alone would not tell a reader what Claude Code is waiting for. */
function shownMessage(message: SDKMessage): unknown {
  if (message.type !== 'system' || message.subtype !== 'api_retry') return message;
  return { ...message, summary: describeRetry(message) };
}

function declaredBody(message: SDKMessage): EventBody | undefined {
  switch (message.type) {
    case 'assistant':
    case 'user':
      return messageBody(message);
    case 'result':
      return resultBody(message);
    case 'stream_event':
      return undefined;
    case 'system':
      return systemBody(message);
    case 'tool_progress':
    case 'auth_status':
    case 'tool_use_summary':
    case 'rate_limit_event':
    case 'prompt_suggestion':
    case 'conversation_reset':
      return noticeBody(message);
    default:
      return undeclaredBody(message);
  }
}

function systemBody(message: System): EventBody | undefined {
  switch (message.subtype) {
    case 'init': {
      if (!Array.isArray(message.tools)) return noticeBody(message);
      const { tools, model, permissionMode, claude_code_version: version, cwd } = message;
      return { kind: 'init', tools, model, permissionMode, version, cwd };
    }
    case 'background_tasks_changed':
      return { kind: 'background_tasks', count: message.tasks.filter((task) => task.ambient !== true).length };
    case 'status': {
      const { permissionMode } = message;
      return { kind: 'status', ...(permissionMode && { permissionMode }) };
    }
    case 'api_retry':
      return { kind: 'retry', summary: describeRetry(message), loginRefused: isLoginRefusal(message) };
    case 'permission_denied':
      return {
        kind: 'tool_refused',
        toolUseId: message.tool_use_id,
        by: SETTINGS_REASONS.has(message.decision_reason_type ?? '') ? 'settings' : 'policy',
        message: message.message,
      };
    case 'session_writes_lost':
    case 'mirror_error':
      return { kind: 'writes_lost', name: message.subtype };
    case 'session_state_changed':
    case 'thinking_tokens':
      return undefined;
    case 'compact_boundary':
    case 'control_request_progress':
    case 'model_refusal_fallback':
    case 'model_refusal_no_fallback':
    case 'local_command_output':
    case 'hook_started':
    case 'hook_progress':
    case 'hook_response':
    case 'plugin_install':
    case 'task_notification':
    case 'task_started':
    case 'task_updated':
    case 'task_progress':
    case 'worker_shutting_down':
    case 'commands_changed':
    case 'notification':
    case 'files_persisted':
    case 'memory_recall':
    case 'elicitation_complete':
    case 'informational':
      return noticeBody(message);
    default:
      return undeclaredBody(message);
  }
}

/** Messages the CLI sends that the SDK's types do not declare: currently only the fate of a message we sent. */
interface Undeclared {
  readonly type?: unknown;
  readonly command_uuid?: unknown;
  readonly state?: unknown;
}

function undeclaredBody(message: Undeclared): EventBody | undefined {
  return message.type === 'keep_alive' || deliverySignals(message).length > 0 ? undefined : noticeBody(message);
}

function declaredSignals(message: SDKMessage): AgentSignal[] {
  switch (message.type) {
    case 'stream_event':
      return streamedText(message);
    case 'user':
      return userSignals(message);
    case 'system':
      return message.subtype === 'session_state_changed' ? [{ kind: 'state', state: message.state }] : [];
    default:
      return deliverySignals(message);
  }
}

const DELIVERY_STATES: Readonly<Record<string, DeliveryState>> = {
  queued: 'queued',
  started: 'started',
  cancelled: 'withdrawn',
};

function deliverySignals({ type, command_uuid: id, state }: Undeclared): AgentSignal[] {
  if (type !== 'command_lifecycle' || typeof id !== 'string') return [];
  return [{ kind: 'delivery', messageId: id, state: DELIVERY_STATES[String(state)] ?? 'ended' }];
}

/** Kept as received; it has no effect. */
function noticeBody(message: object): EventBody {
  const { type, subtype, summary, description, content, text } = message as Record<string, unknown>;
  const name = [subtype, type].find((word) => typeof word === 'string') ?? 'unknown';
  const words = [summary, description, content, text].find((each) => typeof each === 'string');
  return { kind: 'notice', name, ...(words !== undefined && { text: words }) };
}

function messageBody({ type, message, parent_tool_use_id: parent }: Assistant | User): MessageBody {
  const content: unknown = message.content;
  return {
    kind: 'message',
    role: type,
    blocks: typeof content === 'string' ? [{ kind: 'text', text: content }] : blocksIn(content),
    ...(typeof parent === 'string' && { parentToolUseId: parent }),
  };
}

function blocksIn(content: unknown): MessageBlock[] {
  return Array.isArray(content) ? content.filter(isObject).map(toBlock) : [];
}

function toBlock(block: Record<string, unknown>): MessageBlock {
  const { type, text, thinking, id, name, input, tool_use_id: toolUseId } = block;
  if (type === 'text' && typeof text === 'string') return { kind: 'text', text };
  if (type === 'thinking' && typeof thinking === 'string') return { kind: 'thinking', text: thinking };
  if (type === 'tool_use' && typeof id === 'string' && typeof name === 'string')
    return { kind: 'tool_call', toolUseId: id, toolName: name, input: isObject(input) ? input : {} };
  if (type === 'tool_result' && typeof toolUseId === 'string') {
    const isError = block['is_error'] === true;
    const output = toolOutput(block['content']);
    const exitCode = exitCodeOf(output, isError);
    const images = imagesOf(block['content']).length;
    const more = { ...(exitCode !== undefined && { exitCode }), ...(images > 0 && { images }) };
    return { kind: 'tool_result', toolUseId, output, isError, ...more };
  }
  return { kind: 'other', name: typeof type === 'string' ? type : 'unknown' };
}

/** The report alongside the text does not say which call it belongs to, so it is only useful if there is just one. */
function userSignals({ message, tool_use_result: report }: User): AgentSignal[] {
  if (report === undefined || typeof message.content === 'string') return [];
  const ids = message.content.flatMap((block) => (block.type === 'tool_result' ? block.tool_use_id : []));
  return fileSignals(report, ids.length === 1 ? ids[0] : undefined);
}

function resultBody(message: Result): EventBody {
  const { subtype, user_message_uuids: answered } = message;
  return { kind: 'result', subtype, result: toAgentResult(message), ...(answered && { answered }) };
}

const SETTINGS_REASONS: ReadonlySet<string> = new Set(['rule', 'subcommandResults', 'hook']);

function toolOutput(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as { text?: unknown }[]).map(({ text }) => (typeof text === 'string' ? text : '')).join('\n');
}

/** The images in a message of Claude Code that carries the results of tools, by call. */
export function imagesIn(message: unknown): ToolImage[] {
  const { message: said } = isObject(message) ? message : {};
  const content = isObject(said) ? said['content'] : undefined;
  if (!Array.isArray(content)) return [];
  return content
    .filter(isObject)
    .flatMap(({ tool_use_id: toolUseId, content: parts }) =>
      typeof toolUseId === 'string' ? imagesOf(parts).map((image) => ({ toolUseId, ...image })) : [],
    );
}

export interface ToolImage {
  readonly toolUseId: string;
  readonly mediaType: string;
  /** In base 64. */
  readonly data: string;
}

function imagesOf(content: unknown): Omit<ToolImage, 'toolUseId'>[] {
  if (!Array.isArray(content)) return [];
  return content.filter(isObject).flatMap(({ type, source }) => {
    if (type !== 'image' || !isObject(source)) return [];
    const { media_type: mediaType, data } = source;
    return typeof mediaType === 'string' && typeof data === 'string' ? [{ mediaType, data }] : [];
  });
}

/** Claude Code (2.1.325) writes it before the output of a command that failed, and nowhere else. */
function exitCodeOf(output: string, isError: boolean): number | undefined {
  const [, code] = (isError ? /^(?:Error: )?Exit code (\d+)/.exec(output) : undefined) ?? [];
  return code === undefined ? undefined : Number(code);
}

function streamedText({ event, parent_tool_use_id: subAgent }: Partial): AgentSignal[] {
  // Sub-agents write at the same time: their pieces would end up in the middle of the main text.
  if (subAgent !== null) return [];
  if (event.type === 'message_start') return [{ kind: 'streamed', messageId: event.message.id, text: '' }];
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
    return [{ kind: 'streamed', messageId: undefined, text: event.delta.text }];
  }
  return [];
}

/**
 * What Edit, Write and NotebookEdit (2.1.325) report about the file alongside their text (`tool_use_result`); the
 * previous contents are `null` if they are long.
 */
function fileSignals(report: unknown, toolUseId: string | undefined): AgentSignal[] {
  if (!isObject(report)) return [];
  const edit = toolUseId === undefined ? undefined : editIn(report);
  return [
    ...(edit && toolUseId !== undefined ? [{ kind: 'file_edited' as const, toolUseId, edit }] : []),
    ...writtenFile(report),
  ];
}

function writtenFile({ type, filePath, originalFile, notebook_path, original_file }: Report): AgentSignal[] {
  if (typeof notebook_path === 'string') return [written(notebook_path, original_file)];
  if (typeof filePath !== 'string' || originalFile === undefined) return [];
  return [
    type === 'create'
      ? { kind: 'file_written', path: filePath, before: { kind: 'absent' } }
      : written(filePath, originalFile),
  ];
}

function written(path: string, original: unknown): AgentSignal {
  const before: FileBefore = typeof original === 'string' ? { kind: 'text', text: original } : { kind: 'unknown' };
  return { kind: 'file_written', path, before };
}

function editIn({ type, structuredPatch, gitDiff, content }: Report): FileEdit | undefined {
  const created = type === 'create';
  if (!created && structuredPatch === undefined && gitDiff === undefined) return undefined;
  const { additions, deletions } = isObject(gitDiff) ? gitDiff : {};
  return {
    created,
    hunks: hunksIn(structuredPatch),
    ...(typeof additions === 'number' &&
      typeof deletions === 'number' && { counted: { insertions: additions, deletions } }),
    ...(created && typeof content === 'string' && { content }),
  };
}

function hunksIn(patch: unknown): FileEdit['hunks'] {
  if (!Array.isArray(patch)) return [];
  return patch.flatMap((hunk: unknown) => {
    if (!isObject(hunk) || !Array.isArray(hunk['lines'])) return [];
    const lines = hunk['lines'].filter((line): line is string => typeof line === 'string');
    const number = (name: string): number => (typeof hunk[name] === 'number' ? hunk[name] : 0);
    const header = `@@ -${number('oldStart')},${number('oldLines')} +${number('newStart')},${number('newLines')} @@`;
    return [{ header, lines }];
  });
}

type Report = Record<string, unknown>;

type Retry = Extract<SDKMessage, { type: 'system'; subtype: 'api_retry' }>;

/** Claude Code retries a rejected login like an overload; waiting does not help, a person has to act. */
function isLoginRefusal(retry: Retry): boolean {
  return retry.error_status === 401 || retry.error_status === 403 || retry.error === 'authentication_failed';
}

export function describeRetry(retry: Retry): string {
  const attempt = `attempt ${String(retry.attempt)} of ${String(retry.max_retries)}`;
  if (isLoginRefusal(retry)) {
    return `The login or key was rejected (${reason(retry)}), ${attempt}. ${loginRemedy()}`;
  }
  const seconds = Math.max(1, Math.round(retry.retry_delay_ms / 1000));
  return `The API did not respond (${reason(retry)}): ${attempt} in ${String(seconds)} s`;
}

function reason(retry: Retry): string {
  if (retry.error_status !== null) return `${String(retry.error_status)} ${retry.error}`;
  return retry.error === 'unknown' ? 'the connection was lost' : retry.error;
}

/** Other versions may omit figures or texts: totals must stay numbers, and an answer a string. */
export function toAgentResult(message: Result): AgentResult {
  const success = message.subtype === 'success';
  const interrupted = message.terminal_reason === 'aborted_streaming' || message.terminal_reason === 'aborted_tools';
  const errorSubtype = success ? (message.is_error ? 'error_api' : undefined) : message.subtype;
  const structuredOutput = success ? message.structured_output : undefined;
  return {
    text: success ? answerText(message) : errorText(message.errors, interrupted),
    // A refused request (HTTP 400) ends as `success` with is_error set.
    isError: message.is_error || !success,
    interrupted,
    ...(errorSubtype !== undefined && { errorSubtype }),
    numTurns: figure(message.num_turns),
    cumulativeCostUsd: figure(message.total_cost_usd),
    durationMs: figure(message.duration_ms),
    durationApiMs: figure(message.duration_api_ms),
    ...(message.stop_reason != null && { stopReason: message.stop_reason }),
    usage: { ...message.usage },
    modelUsage: { ...message.modelUsage },
    ...(structuredOutput !== undefined && { structuredOutput }),
    permissionDenials: message.permission_denials,
  };
}

/** Claude Code 2.1.325 says this of a missing login, and names a command that exists only in its own terminal. */
const NOT_LOGGED_IN = /not logged in|please run \/login|invalid api key|invalid authentication/i;

function answerText(message: Extract<Result, { subtype: 'success' }>): string {
  const text = textOf(message.result);
  const isRefused = message.api_error_status === 401 || message.api_error_status === 403;
  if (!message.is_error || !(isRefused || NOT_LOGGED_IN.test(text))) return text;
  return `${text}\nClaude Code has no valid login where the server runs. ${loginRemedy()}`;
}

/** By its path: whoever has Claude Code only from this package has no such command. */
export function loginRemedy(program = onlyBundledProgram()): string {
  const command = program === undefined ? 'claude' : `"${program}"`;
  return `Run ${command} auth login, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN where the server is started.`;
}

/** After an interrupt Claude Code only reports internal notes (`[ede_diagnostic] …`), which mean nothing to anyone else. */
function errorText(errors: unknown, interrupted: boolean): string {
  const text = textOf(errors);
  return interrupted && (text === '' || text.startsWith('[ede_diagnostic]')) ? 'The turn was interrupted.' : text;
}

function figure(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.map(String).join('\n') : '';
}
