import { cutAt, summarizeTool } from './tool-summary.ts';

export type ToolStatus = 'running' | 'completed' | 'denied' | 'failed';

export interface ToolUse {
  toolName: string;
  status: ToolStatus;
  summary: string;
}

const MAX_TOOL_USES = 200;
const MAX_LINE = 200;

/** What was done since the prompt and what goes on now. */
export class Activity {
  readonly #uses = new Map<string, ToolUse>();
  #counts = new Map<string, number>();
  #note: string | undefined;
  #lastToolUseId: string | undefined;

  begin(): void {
    this.#counts = new Map();
    this.#note = undefined;
  }

  toolUsed(toolUseId: string, toolName: string, input: Record<string, unknown>): void {
    this.#note = undefined;
    this.#lastToolUseId = toolUseId;
    this.#counts.set(toolName, (this.#counts.get(toolName) ?? 0) + 1);
    this.#uses.set(toolUseId, { toolName, status: 'running', summary: summarizeTool(toolName, input, 80) });
    if (this.#uses.size > MAX_TOOL_USES) {
      const [oldest] = this.#uses.keys();
      if (oldest !== undefined) this.#uses.delete(oldest);
    }
  }

  /** A denial stays a denial when its error result comes in. */
  toolEnded(toolUseId: string, status: Exclude<ToolStatus, 'running'>): void {
    const use = this.#uses.get(toolUseId);
    if (use?.status === 'running') use.status = status;
  }

  /** Whatever still ran when the turn ended did not come to its end. */
  endAll(): void {
    for (const use of this.#uses.values()) if (use.status === 'running') use.status = 'failed';
  }

  /** Something worth telling that is not a tool, such as a retry; gone with the next tool. */
  note(line: string): void {
    this.#note = line;
  }

  clearNote(): void {
    this.#note = undefined;
  }

  get toolUses(): ToolUse[] {
    return [...this.#uses.values()];
  }

  get toolCount(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  get lastToolUseId(): string | undefined {
    return this.#lastToolUseId;
  }

  /** At most 200 characters: `14 tools (6 Read, 5 Edit, 3 Bash), now: npm test, $0.12`. */
  line(costUsd: number, working: boolean): string {
    const parts: string[] = [];
    if (this.#note !== undefined) parts.push(this.#note);
    const kinds = [...this.#counts].sort(([, a], [, b]) => b - a);
    const shown = kinds.slice(0, 5).map(([name, count]) => `${String(count)} ${name}`);
    if (kinds.length > shown.length) shown.push('…');
    const count = this.toolCount;
    parts.push(
      count === 0 ? 'no tools yet' : `${String(count)} ${count === 1 ? 'tool' : 'tools'} (${shown.join(', ')})`,
    );
    if (working) {
      const now = this.toolUses.filter((use) => use.status === 'running').at(-1);
      parts.push(now ? `now: ${now.summary || now.toolName}` : 'now: thinking');
    }
    parts.push(`$${costUsd.toFixed(2)}`);
    const line = parts.join(', ');
    return line.length > MAX_LINE ? `${cutAt(line, MAX_LINE - 1)}…` : line;
  }
}
