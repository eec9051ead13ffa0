import { nearestName } from '../config/bad-input.ts';
import type { EventReader } from '../engine/conversation/reading.ts';
import type { EventBody, MessageBlock, SessionEvent, ToolCallBlock } from '../schema/events.ts';

/**
 * Results do not say which tool they belong to. Calls come before their results, mostly right before: the reader of
 * some events adds those it passes, and earlier calls are searched for backwards, no further than necessary.
 */
export class ToolNames {
  readonly #names = new Map<string, string>();
  readonly #earlier: Iterator<SessionEvent>;

  /** `first`: the event that the reader starts with. */
  constructor(log: EventReader, first: number) {
    this.#earlier = log.newestFirst(first)[Symbol.iterator]();
  }

  add({ toolUseId, toolName }: Pick<ToolCallBlock, 'toolUseId' | 'toolName'>): void {
    this.#names.set(toolUseId, toolName);
  }

  of(toolUseId: string): string | undefined {
    while (!this.#names.has(toolUseId)) {
      const next = this.#earlier.next();
      if (next.done === true) return undefined;
      for (const block of blocksOf(next.value.body)) if (block.kind === 'tool_call') this.add(block);
    }
    return this.#names.get(toolUseId);
  }
}

export function blocksOf(body: EventBody): readonly MessageBlock[] {
  return body.kind === 'message' ? body.blocks : [];
}

interface ToolNote {
  category: string;
  description: string;
}

/** What the built-in tools are for. Names come from Claude Code; a tool without a note is still listed. */
const NOTES: Record<string, ToolNote> = {
  Agent: { category: 'agents', description: 'starts a sub-agent' },
  AskUserQuestion: { category: 'interaction', description: 'asks a question with choices' },
  Bash: { category: 'execution', description: 'runs a shell command' },
  CronCreate: { category: 'scheduling', description: 'schedules a prompt' },
  CronDelete: { category: 'scheduling', description: 'removes a scheduled prompt' },
  CronList: { category: 'scheduling', description: 'lists scheduled prompts' },
  Edit: { category: 'files', description: 'changes part of a file' },
  EnterPlanMode: { category: 'planning', description: 'starts planning' },
  EnterWorktree: { category: 'git', description: 'works in a git worktree' },
  ExitPlanMode: { category: 'planning', description: 'presents a plan for review' },
  ExitWorktree: { category: 'git', description: 'leaves a git worktree' },
  Glob: { category: 'search', description: 'finds files by name' },
  Grep: { category: 'search', description: 'finds text in files' },
  LSP: { category: 'search', description: 'asks a language server' },
  ListAgents: { category: 'agents', description: 'lists agents that can be written to' },
  ListMcpResourcesTool: { category: 'mcp', description: 'lists resources of MCP servers' },
  Monitor: { category: 'execution', description: 'watches a command' },
  NotebookEdit: { category: 'files', description: 'changes a notebook cell' },
  PowerShell: { category: 'execution', description: 'runs a PowerShell command' },
  Read: { category: 'files', description: 'reads a file' },
  ReadMcpResourceTool: { category: 'mcp', description: 'reads a resource of an MCP server' },
  ReportFindings: { category: 'interaction', description: 'reports findings of a review' },
  ScheduleWakeup: { category: 'scheduling', description: 'wakes the session later' },
  SendMessage: { category: 'agents', description: 'writes to another agent' },
  Skill: { category: 'skills', description: 'uses a skill' },
  Task: { category: 'agents', description: 'starts a sub-agent; the same as Agent' },
  TaskCreate: { category: 'planning', description: 'adds to the task list' },
  TaskGet: { category: 'planning', description: 'reads a task' },
  TaskList: { category: 'planning', description: 'reads the task list' },
  TaskStop: { category: 'execution', description: 'stops a background task' },
  TaskUpdate: { category: 'planning', description: 'changes a task' },
  TodoWrite: { category: 'planning', description: 'writes the to-do list' },
  ToolSearch: { category: 'mcp', description: 'finds further tools' },
  WebFetch: { category: 'web', description: 'fetches a page' },
  WebSearch: { category: 'web', description: 'searches the web' },
  Workflow: { category: 'agents', description: 'runs a workflow' },
  Write: { category: 'files', description: 'writes a file' },
};

/** Those that rules are written for; a list of all of them would cost every caller hundreds of bytes. */
export const TOOLS_FOR_RULES: readonly string[] = [
  'Bash',
  'Read',
  'Edit',
  'Write',
  'NotebookEdit',
  'Glob',
  'Grep',
  'WebFetch',
  'WebSearch',
  'Agent',
];

/** The tools of Claude Code itself. */
export function isKnownTool(name: string): boolean {
  return Object.hasOwn(NOTES, name);
}

/** The one that was probably meant. */
export function nearestTool(name: string): string | undefined {
  return nearestName(name, Object.keys(NOTES));
}

export function describeTools(names: readonly string[]): { name: string; category: string; description?: string }[] {
  return names.map((name) => {
    const note = NOTES[name];
    if (note) return { name, ...note };
    return { name, category: name.startsWith('mcp__') ? 'mcp' : 'other' };
  });
}
