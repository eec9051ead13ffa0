import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import type { ConversationServices, RestoredConversation } from '../conversation/conversation-types.ts';
import { Grants, type Grant, type GrantListener, type Used } from './grants.ts';
import type { OpenRequest, Source } from './requests.ts';
import type { Ending } from '../conversation/state.ts';
import { ranInstead } from './shown-request.ts';
import { cutAt, summarizeTool } from '../conversation/tool-summary.ts';

/**
 * What was decided while there was no process: a message for the next one, and a one-time grant for each call that was
 * allowed.
 */
export class DecidedAway {
  readonly #grants: Grants;
  readonly #holds: ((grant: Grant) => boolean) | undefined;
  #lines: string[];

  constructor(
    sessionId: string,
    { clock, tell, holds }: ConversationServices,
    restored: RestoredConversation | undefined,
  ) {
    const listener: GrantListener = {
      added: (grant) => tell({ kind: 'granted', grant }),
      closed: (grant, end) => tell({ kind: 'grant_ended', grant, end }),
    };
    this.#grants = new Grants(sessionId, () => clock.wallTime(), listener, restored?.grants);
    this.#holds = holds;
    this.#lines = [...(restored?.handover ?? [])];
  }

  /** What the next process must be told first; empty if nothing. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** The next process was told, or there will not be one. */
  clear(): void {
    this.#lines = [];
  }

  /** What the next process is told besides. */
  note(line: string): void {
    this.#lines.push(line);
  }

  /** Allowed calls are granted once; denials and answers are passed on as text. */
  add(request: OpenRequest, decision: Decision, source: Source): void {
    const { ask, kind, cwd = '', target } = request;
    this.#lines.push(handoverLine(request, decision));
    if (decision.behavior === 'allow' && kind !== 'user_question')
      this.#grants.add(request.id, { ...ask, cwd, target }, decision, source === 'human' ? 'human' : 'caller');
  }

  /** The decision on exactly this call, if it was made earlier. */
  use(ask: PermissionAsk, cwd: string, target: string | undefined): Used | undefined {
    return this.#grants.use(ask, { ...ask, cwd, target }, this.#holds);
  }

  /** At rest, remaining grants are dropped, unless Claude has not been told about them yet. */
  lapsed(ending: Ending): Ending {
    if (this.#lines.length > 0 || this.#grants.open.length === 0) return ending;
    const tools = this.#grants.lapseAll().map(({ tool }) => tool);
    if (ending.how === 'cancel' || !ending.result) return ending;
    return { ...ending, result: { ...ending.result, text: `${ending.result.text}\n\n${lapsedText(tools)}` } };
  }
}

/** Claude Code (2.1.325) resumes with the call unanswered; this text replaces the answer. */
export function handoverText(lines: readonly string[]): string {
  return [
    'Your process was stopped while you waited for an answer. These decisions were made in the meantime:',
    ...lines.map((line) => `- ${line}`),
    'Continue with the task from here.',
  ].join('\n');
}

/** One line on a request that was settled while the session had no process. */
function handoverLine({ ask, kind }: Pick<OpenRequest, 'ask' | 'kind'>, decision: Decision): string {
  const summary = summarizeTool(ask.toolName, ask.input);
  const call = summary === '' ? ask.toolName : `${ask.toolName} (${summary})`;
  const orphan =
    ask.agentId === undefined ? '' : ' A sub-agent asked for it and ended with the process: do it yourself now.';
  if (decision.behavior === 'deny') return `${call} was refused: ${decision.message}${orphan}`;
  if (kind === 'user_question') {
    const answers = decision.updatedInput?.['answers'] ?? decision.updatedInput ?? {};
    return `${call} was answered: ${JSON.stringify(answers)}${orphan}`;
  }
  const changed = decision.updatedInput ? ' It will run with the changes made by whoever allowed it.' : '';
  return `${call} was allowed. Make exactly the same call again, with the same input: it will run without asking again.${changed}${orphan}`;
}

/** What a result says about allowed calls that were not repeated. */
function lapsedText(tools: readonly string[]): string {
  return `Allowed while the session was stopped, but not repeated: ${tools.join(', ')}. Ask for permission again if it is still needed.`;
}

const MAX_INPUT_CHARS = 4_000;

/**
 * What Claude should know about a call that was allowed: that its input was changed, and what was said with the answer.
 * The SDK's answer has no room for either.
 */
export function callNote(
  request: OpenRequest,
  message: string | undefined,
  decision: Decision,
  source: Source,
): string | undefined {
  if (decision.behavior === 'deny' || request.own) return undefined;
  const who = source === 'human' ? 'the user' : 'the caller';
  const ran = ranInstead(request, decision);
  const said = message?.trim() ?? '';
  const parts = [
    ...(ran
      ? [`${who} changed its input before allowing it; it runs with ${cutAt(JSON.stringify(ran), MAX_INPUT_CHARS)}`]
      : []),
    ...(said === '' ? [] : [`${who} allowed it and says: ${said}`]),
  ];
  return parts.length === 0 ? undefined : `About your ${request.ask.toolName} call: ${parts.join('; ')}`;
}
