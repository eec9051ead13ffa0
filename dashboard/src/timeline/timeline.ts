import type { MessageRole, Verdict } from '../../../src/schema/enums.ts';
import type { ApiEvent } from '../../../src/schema/api-events.ts';
import type { AgentResult, EventBody, MessageBlock, ToolResultBlock } from '../../../src/schema/events.ts';
import type { Fields } from './event-data.ts';
import { noteOf } from './notes.ts';

/** What a session's events say, as the page shows it. */
export type Item = { readonly key: string; readonly at: number } & (
  | { readonly kind: 'prompt'; readonly text: string; readonly messageId: string | undefined }
  | { readonly kind: 'text'; readonly text: string; readonly unfinished: boolean }
  | { readonly kind: 'thinking'; readonly text: string }
  | { readonly kind: 'tool'; readonly call: ToolCall }
  | { readonly kind: 'request'; readonly request: AskedRequest }
  | { readonly kind: 'result'; readonly result: AgentResult }
  /** What the hub or Claude Code itself put into the conversation: never a person's prompt. */
  | { readonly kind: 'aside'; readonly title: string; readonly text: string }
  | { readonly kind: 'note'; readonly text: string; readonly isProblem: boolean }
);

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** As Claude made it. */
  readonly input: Fields;
  /** What ran instead, if whoever allowed it changed it. */
  ran?: Fields;
  /** When it was made, or when it was allowed: it does not take longer because somebody had to be asked. */
  startedAt: number;
  endedAt?: number;
  /** The turn is over, and there is no result. */
  cutOff?: boolean;
  /** It was allowed while Claude Code was not running, and made again. */
  repeated?: boolean;
  /** The call that started the sub-agent that made this one. */
  readonly parent: ToolCall | undefined;
  output?: string;
  /** The event with the images that it returned. */
  images?: { readonly event: number; readonly count: number };
  failed?: boolean;
  /** Why Claude Code itself refused it. */
  refused?: { readonly message: string; readonly by: string; readonly rule?: string };
  request?: AskedRequest;
  /** What a sub-agent did for this call. */
  readonly steps: Item[];
}

export interface AskedRequest {
  readonly id: string;
  readonly toolName: string;
  outcome?: {
    readonly decision: Verdict;
    readonly source: string;
    readonly message?: string;
    readonly changed: boolean;
    /** No process heard it. */
    readonly detached: boolean;
    /** The standing rule that decided. */
    readonly rule?: string;
    /** To a question, by its text. */
    readonly answers?: Fields;
  };
}

export type Progress =
  'waiting' | 'allowed' | 'running' | 'done' | 'failed' | 'denied' | 'unfinished' | 'repeated' | 'lapsed';

/** How far a call has got. Nothing runs in a session at rest, unless it left tasks in the background. */
export function progressOf(
  { request, endedAt, failed, refused, cutOff, repeated }: ToolCall,
  session: 'working' | 'resting',
): Progress {
  if (refused || request?.outcome?.decision === 'deny') return 'denied';
  if (endedAt !== undefined) return failed === true ? 'failed' : 'done';
  if (repeated === true) return 'repeated';
  const isOver = cutOff === true || session === 'resting';
  if (request?.outcome?.detached === true) return isOver ? 'lapsed' : 'allowed';
  if (isOver) return 'unfinished';
  return request && !request.outcome ? 'waiting' : 'running';
}

const AGAIN = /^Your call of \S+ was allowed, but not carried out, because your process had been stopped\. /;

/** Asks Claude to make a call after all. Nothing but a message tells it. */
export function againText({ name, input }: ToolCall): string {
  return `Your call of ${name} was allowed, but not carried out, because your process had been stopped. If it is still needed, make it again with the same input:\n${JSON.stringify(input, null, 2)}`;
}

export interface Row {
  readonly item: Item;
  readonly depth: number;
  /** The session that it happened in, if that is another one. */
  readonly of?: string;
}

type Body<Kind extends EventBody['kind']> = Extract<EventBody, { kind: Kind }>;

/** Takes events in id order and keeps the result. */
export class Timeline {
  readonly items: Item[] = [];
  readonly #calls = new Map<string, ToolCall>();
  readonly #requests = new Map<string, AskedRequest>();
  /** Calls without a result. */
  readonly #open = new Set<ToolCall>();
  /** Calls that were allowed when their process was gone, and have not been made again. */
  readonly #unheard = new Set<ToolCall>();
  /** Claude Code may ask about a call before it tells of it. */
  readonly #early = new Map<string, Body<'repeated'>>();
  #unfinished: number | undefined;
  #setup = '';

  add({ id, timestamp, data: body }: ApiEvent): void {
    const at = Date.parse(timestamp);
    const key = `e${id}`;
    switch (body.kind) {
      case 'message':
        return this.#message(id, at, body);
      case 'prompt':
        return this.#prompt(key, at, body);
      case 'partial':
        return this.#partial(key, at, body.text);
      case 'permission_request':
        return this.#asked(key, at, body);
      case 'permission_result':
        return this.#settled(key, at, body);
      case 'repeated':
        return this.#repeated(body);
      case 'tool_refused': {
        const call = this.#calls.get(body.toolUseId);
        if (!call) break;
        const { message, by, rule } = body;
        call.refused = { message, by, ...(rule && { rule: rule.id }) };
        return;
      }
      case 'result':
        this.#unfinished = undefined;
        this.#turnOver();
        this.items.push({ kind: 'result', key, at, result: body.result });
        return;
      case 'error':
        this.#turnOver();
        break;
      case 'init': {
        const setup = `${body.model} ${body.permissionMode}`;
        // Claude Code repeats it at every turn.
        if (setup === this.#setup) return;
        this.#setup = setup;
        break;
      }
      default:
    }
    const note = noteOf(body);
    if (note) this.items.push({ kind: 'note', key, at, ...note });
  }

  /** Text that the session itself records while it is written. */
  get isWriting(): boolean {
    return this.#unfinished !== undefined;
  }

  /** Depth first: what a sub-agent did is below the call that started it, unless that is collapsed. */
  rows(isFolded: (call: ToolCall) => boolean): Row[] {
    const rows: Row[] = [];
    const walk = (items: readonly Item[], depth: number) => {
      for (const item of items) {
        rows.push({ item, depth });
        if (item.kind === 'tool' && item.call.steps.length > 0 && !isFolded(item.call))
          walk(item.call.steps, depth + 1);
      }
    };
    walk(this.items, 0);
    return rows;
  }

  #prompt(key: string, at: number, { text, messageId, preamble = 0 }: Body<'prompt'>): void {
    if (preamble > 0)
      this.items.push({
        kind: 'aside',
        key: `${key}p`,
        at,
        title: 'The hub told Claude what was decided',
        text: text.slice(0, preamble).trim(),
      });
    const own = text.slice(preamble).trim();
    if (AGAIN.test(own)) this.items.push({ kind: 'aside', key, at, title: 'Asked again for a call', text: own });
    else if (own !== '') this.items.push({ kind: 'prompt', key, at, text: preamble === 0 ? text : own, messageId });
  }

  /** Claude Code waits for its tools: what has no result by now never gets one. A background agent works on. */
  #turnOver(): void {
    for (const call of this.#open) {
      if (call.parent !== undefined && !this.#open.has(call.parent)) continue;
      call.cutOff = true;
    }
    for (const call of this.#open) if (call.cutOff === true) this.#open.delete(call);
  }

  #message(event: number, at: number, { role, blocks, parentToolUseId }: Body<'message'>): void {
    const parent = parentToolUseId === undefined ? undefined : this.#calls.get(parentToolUseId);
    const into = parent?.steps ?? this.items;
    if (role === 'assistant' && into === this.items) this.#dropUnfinished();
    for (const [index, block] of blocks.entries()) {
      if (block.kind === 'tool_result') this.#ended(event, at, block);
      const item = this.#block(`e${event}.${index}`, at, block, role, parent);
      if (item) into.push(item);
    }
  }

  #block(
    key: string,
    at: number,
    block: MessageBlock,
    role: MessageRole,
    parent: ToolCall | undefined,
  ): Item | undefined {
    switch (block.kind) {
      case 'text':
        if (block.text.trim() === '') return undefined;
        return role === 'user'
          ? { kind: 'aside', key, at, title: asideTitle(block.text, parent), text: block.text }
          : { kind: 'text', key, at, text: block.text, unfinished: false };
      case 'thinking':
        return block.text.trim() === '' ? undefined : { kind: 'thinking', key, at, text: block.text };
      case 'tool_call': {
        const { toolUseId: id, toolName: name, input } = block;
        const call: ToolCall = { id, name, input, startedAt: at, parent, steps: [] };
        this.#markRepeated(call);
        this.#calls.set(id, call);
        this.#open.add(call);
        const early = this.#early.get(id);
        if (early) this.#repeated(early);
        return { kind: 'tool', key, at, call };
      }
      case 'tool_result':
        return undefined;
      case 'other':
        return { kind: 'note', key, at, text: `(${block.name})`, isProblem: false };
    }
  }

  #ended(event: number, at: number, { toolUseId, output, isError, images: count }: ToolResultBlock): void {
    const call = this.#calls.get(toolUseId);
    if (!call) return;
    Object.assign(call, {
      endedAt: at,
      output,
      failed: isError,
      ...(count !== undefined && { images: { event, count } }),
    });
    this.#open.delete(call);
  }

  /** An allowed call that no process heard about is made again, with the same input, by a later one. */
  #markRepeated({ name, input }: ToolCall): void {
    for (const earlier of this.#unheard) {
      if (earlier.name !== name || !isSame(earlier.input, input)) continue;
      earlier.repeated = true;
      this.#open.delete(earlier);
      this.#unheard.delete(earlier);
      return;
    }
  }

  /** What was decided then is what lets it run now. */
  #repeated(body: Body<'repeated'>): void {
    const { toolUseId, requestId, input } = body;
    const call = this.#calls.get(toolUseId);
    const request = this.#requests.get(requestId);
    if (!call) return void this.#early.set(toolUseId, body);
    if (request) call.request = { ...request };
    if (input) call.ran = input;
  }

  #asked(key: string, at: number, { request: { id, ask } }: Body<'permission_request'>): void {
    const request: AskedRequest = { id, toolName: ask.toolName };
    this.#requests.set(id, request);
    const call = this.#calls.get(ask.toolUseId);
    if (call) call.request = request;
    else this.items.push({ kind: 'request', key, at, request });
  }

  #settled(key: string, at: number, body: Body<'permission_result'>): void {
    const { decision, source, message, input, answers, detached = false, rule } = body;
    const outcome = {
      ...{ decision, source, changed: input !== undefined, detached },
      ...(message !== undefined && { message }),
      ...(answers && { answers }),
      ...(rule && { rule: rule.id }),
    };
    const request = this.#requests.get(body.requestId);
    const call = this.#calls.get(body.toolUseId);
    if (call && decision === 'allow') this.#allowed(call, at, body);
    if (request) request.outcome = outcome;
    else if (call) call.request = { id: body.requestId, toolName: body.toolName, outcome };
    else
      this.items.push({ kind: 'request', key, at, request: { id: body.requestId, toolName: body.toolName, outcome } });
  }

  #allowed(call: ToolCall, at: number, { detached, input, answers }: Body<'permission_result'>): void {
    if (detached !== true) {
      call.startedAt = at;
      if (input) call.ran = input;
    } else if (answers) {
      // Claude is told them in words.
      call.endedAt = at;
      this.#open.delete(call);
    } else this.#unheard.add(call);
  }

  #partial(key: string, at: number, text: string): void {
    const open = this.#unfinished === undefined ? undefined : this.items[this.#unfinished];
    if (this.#unfinished !== undefined && open?.kind === 'text') {
      this.items[this.#unfinished] = { ...open, text: open.text + text };
      return;
    }
    this.#unfinished = this.items.length;
    this.items.push({ kind: 'text', key, at, text, unfinished: true });
  }

  /** The complete message replaces the pieces. */
  #dropUnfinished(): void {
    if (this.#unfinished !== undefined) this.items.splice(this.#unfinished, 1);
    this.#unfinished = undefined;
  }
}

/** What can be searched for in an item. */
export function textIn(item: Item): string {
  switch (item.kind) {
    case 'tool':
      return `${item.call.name} ${JSON.stringify(item.call.ran ?? item.call.input)} ${item.call.output ?? ''}`;
    case 'request':
      return item.request.toolName;
    case 'result':
      return item.result.text;
    case 'aside':
      return `${item.title} ${item.text}`;
    default:
      return item.text;
  }
}

/** Claude Code's own words, by how they begin (2.1.325). */
const ASIDES: readonly (readonly [beginning: string, title: string])[] = [
  ['[Request interrupted by user', 'Interrupted'],
  ['This session is being continued from a previous conversation', 'Summary of the conversation so far'],
];

function asideTitle(text: string, parent: ToolCall | undefined): string {
  if (parent) return 'What the sub-agent was told';
  return ASIDES.find(([beginning]) => text.startsWith(beginning))?.[1] ?? 'Claude Code added this';
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, item]) => [name, sorted(item)]),
  );
}
