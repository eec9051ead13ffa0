import type { SDKMessage } from '@anthropic-ai/claude-agent-sdk';
import type { AgentSignal, EventType, FileBefore, Translation } from './agent-signal.ts';
import { toAgentResult } from './agent-result.ts';
import { describeRetry, isLoginRefusal } from './api-retry.ts';

type Assistant = Extract<SDKMessage, { type: 'assistant' }>;
type User = Extract<SDKMessage, { type: 'user' }>;
type System = Extract<SDKMessage, { type: 'system' }>;
type Partial = Extract<SDKMessage, { type: 'stream_event' }>;

/** The one place where a message of Claude Code becomes an event and signals. An unknown message is progress. */
export function translate(message: SDKMessage): Translation {
  switch (message.type) {
    case 'assistant':
      return kept('output', message, assistantSignals(message));
    case 'user':
      return kept('output', message, userSignals(message));
    case 'result':
      return kept('result', message, [
        { kind: 'result', result: toAgentResult(message), answered: message.user_message_uuids },
      ]);
    case 'stream_event':
      return { event: undefined, signals: partialSignals(message) };
    case 'system':
      return translateSystem(message);
    case 'tool_progress':
    case 'auth_status':
    case 'tool_use_summary':
    case 'rate_limit_event':
    case 'prompt_suggestion':
    case 'conversation_reset':
      return kept('progress', message);
    default:
      return translateUndeclared(message);
  }
}

function translateSystem(message: System): Translation {
  switch (message.subtype) {
    case 'init':
      if (!Array.isArray(message.tools)) return kept('progress', message);
      return kept('progress', message, [
        {
          kind: 'started',
          tools: message.tools,
          model: message.model,
          permissionMode: message.permissionMode,
          version: message.claude_code_version,
          cwd: message.cwd,
        },
      ]);
    case 'session_state_changed':
      return { event: undefined, signals: [{ kind: 'state', state: message.state }] };
    case 'background_tasks_changed':
      return kept('progress', message, [
        { kind: 'background_tasks', count: message.tasks.filter((task) => task.ambient !== true).length },
      ]);
    case 'status':
      return kept(
        'progress',
        message,
        message.permissionMode ? [{ kind: 'permission_mode', mode: message.permissionMode }] : [],
      );
    case 'api_retry': {
      const loginRefused = isLoginRefusal(message);
      const line = describeRetry(message);
      // A refused login is retried for minutes: it must be visible in the short view too, so it counts as an error.
      return kept(loginRefused ? 'error' : 'progress', { ...message, summary: line }, [
        { kind: 'retry', line, loginRefused },
      ]);
    }
    case 'permission_denied':
      return kept('progress', message, [
        {
          kind: 'tool_refused',
          toolUseId: message.tool_use_id,
          by: SETTINGS_REASONS.has(message.decision_reason_type ?? '') ? 'settings' : 'policy',
          message: message.message,
        },
      ]);
    case 'session_writes_lost':
    case 'mirror_error':
      return kept('error', message);
    case 'thinking_tokens':
      return { event: undefined, signals: [] };
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
      return kept('progress', message);
    default:
      return translateUndeclared(message);
  }
}

/** Messages the CLI sends that the SDK's types do not declare: at present only the fate of a message we sent. */
function translateUndeclared(message: never): Translation {
  const raw: unknown = message;
  if (typeof raw !== 'object' || raw === null) return { event: undefined, signals: [] };
  const { type, command_uuid: id, state } = raw as { type?: unknown; command_uuid?: unknown; state?: unknown };
  if (type === 'keep_alive') return { event: undefined, signals: [] };
  if (type === 'command_lifecycle' && typeof id === 'string') {
    const stage = state === 'queued' || state === 'started' ? state : 'ended';
    return { event: undefined, signals: [{ kind: 'delivery', messageId: id, state: stage }] };
  }
  return kept('progress', raw);
}

function kept(type: EventType, data: unknown, signals: AgentSignal[] = []): Translation {
  return { event: { type, data }, signals };
}

function assistantSignals(message: Assistant): AgentSignal[] {
  const signals: AgentSignal[] = [{ kind: 'model_answered' }];
  for (const block of message.message.content) {
    if (block.type !== 'tool_use' || typeof block.id !== 'string' || typeof block.name !== 'string') continue;
    const input = typeof block.input === 'object' && block.input !== null ? block.input : {};
    signals.push({
      kind: 'tool_use',
      toolUseId: block.id,
      toolName: block.name,
      input: input as Record<string, unknown>,
    });
  }
  return signals;
}

function userSignals(message: User): AgentSignal[] {
  const content = message.message.content;
  if (typeof content === 'string') return [];
  const signals: AgentSignal[] = [];
  const isOnly = content.filter(({ type }) => type === 'tool_result').length === 1;
  for (const block of content) {
    if (block.type !== 'tool_result') continue;
    const isError = block.is_error === true;
    const output = toolOutput(block.content);
    const exitCode = exitCodeOf(output, isError);
    const returned = message.tool_use_result;
    signals.push({
      kind: 'tool_result',
      toolUseId: block.tool_use_id,
      isError,
      output,
      exitCode,
      ...(returned !== undefined && isOnly && { returned }),
    });
  }
  return [...signals, ...writtenFile(message.tool_use_result)];
}

/** What Edit, Write and NotebookEdit (2.1.325) report of the file; the contents before are `null` where they are long. */
function writtenFile(report: unknown): AgentSignal[] {
  if (typeof report !== 'object' || report === null) return [];
  const { type, filePath, originalFile, notebook_path, original_file } = report as Record<string, unknown>;
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

const SETTINGS_REASONS: ReadonlySet<string> = new Set(['rule', 'subcommandResults', 'hook']);

/** The text of a tool result. */
export function toolOutput(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as { text?: unknown }[]).map(({ text }) => (typeof text === 'string' ? text : '')).join('\n');
}

/** Claude Code (2.1.325) writes it before the output of a command that failed, and nowhere else. */
export function exitCodeOf(output: string, isError: boolean): number | undefined {
  const [, code] = (isError ? /^(?:Error: )?Exit code (\d+)/.exec(output) : undefined) ?? [];
  return code === undefined ? undefined : Number(code);
}

function partialSignals({ event, parent_tool_use_id: subAgent }: Partial): AgentSignal[] {
  // Sub-agents write at the same time: their pieces would end up in the middle of the main text.
  if (subAgent !== null) return [];
  if (event.type === 'message_start') return [{ kind: 'partial', messageId: event.message.id, text: '' }];
  if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
    return [{ kind: 'partial', messageId: undefined, text: event.delta.text }];
  }
  return [];
}
