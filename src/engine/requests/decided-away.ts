import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import type { ConversationServices, RestoredConversation } from '../conversation/conversation-types.ts';
import { Grants, type Grant, type GrantListener, type Used } from './grants.ts';
import { handoverLine, lapsedText } from './handover.ts';
import type { OpenRequest, Source } from './requests.ts';
import type { Ending } from '../conversation/standing.ts';

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
