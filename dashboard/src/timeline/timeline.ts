import type { MessageRole, Verdict } from '../../../src/schema/enums.ts';
import type { ApiEvent } from '../../../src/schema/api.ts';
import type { AgentResult, EventBody, MessageBlock } from '../../../src/schema/events.ts';
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
  | { readonly kind: 'note'; readonly text: string; readonly isProblem: boolean }
);

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  input: Fields;
  readonly startedAt: number;
  endedAt?: number;
  output?: string;
  failed?: boolean;
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
  };
}

export interface Row {
  readonly item: Item;
  readonly depth: number;
}

type Body<Kind extends EventBody['kind']> = Extract<EventBody, { kind: Kind }>;

/** Takes events in id order and keeps the result. */
export class Timeline {
  readonly items: Item[] = [];
  readonly #calls = new Map<string, ToolCall>();
  readonly #requests = new Map<string, AskedRequest>();
  #unfinished: number | undefined;
  #setup = '';

  add({ id, timestamp, data: body }: ApiEvent): void {
    const at = Date.parse(timestamp);
    const key = `e${id}`;
    switch (body.kind) {
      case 'message':
        return this.#message(key, at, body);
      case 'prompt':
        this.items.push({ kind: 'prompt', key, at, text: body.text, messageId: body.messageId });
        return;
      case 'partial':
        return this.#partial(key, at, body.text);
      case 'permission_request':
        return this.#asked(key, at, body);
      case 'permission_result':
        return this.#settled(key, at, body);
      case 'result':
        this.#unfinished = undefined;
        this.items.push({ kind: 'result', key, at, result: body.result });
        return;
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

  #message(key: string, at: number, { role, blocks, parentToolUseId }: Body<'message'>): void {
    const parent = parentToolUseId === undefined ? undefined : this.#calls.get(parentToolUseId);
    const into = parent?.steps ?? this.items;
    if (role === 'assistant' && into === this.items) this.#dropUnfinished();
    for (const [index, block] of blocks.entries()) {
      const item = this.#block(`${key}.${index}`, at, block, role);
      if (item) into.push(item);
    }
  }

  #block(key: string, at: number, block: MessageBlock, role: MessageRole): Item | undefined {
    switch (block.kind) {
      case 'text':
        if (block.text.trim() === '') return undefined;
        return role === 'user'
          ? { kind: 'prompt', key, at, text: block.text, messageId: undefined }
          : { kind: 'text', key, at, text: block.text, unfinished: false };
      case 'thinking':
        return block.text.trim() === '' ? undefined : { kind: 'thinking', key, at, text: block.text };
      case 'tool_call': {
        const call = { id: block.toolUseId, name: block.toolName, input: block.input, startedAt: at, steps: [] };
        this.#calls.set(call.id, call);
        return { kind: 'tool', key, at, call };
      }
      case 'tool_result': {
        const call = this.#calls.get(block.toolUseId);
        if (call) Object.assign(call, { endedAt: at, output: block.output, failed: block.isError });
        return undefined;
      }
      case 'other':
        return { kind: 'note', key, at, text: `(${block.name})`, isProblem: false };
    }
  }

  #asked(key: string, at: number, { request: { id, ask } }: Body<'permission_request'>): void {
    const request: AskedRequest = { id, toolName: ask.toolName };
    this.#requests.set(id, request);
    const call = this.#calls.get(ask.toolUseId);
    if (call) call.request = request;
    else this.items.push({ kind: 'request', key, at, request });
  }

  #settled(key: string, at: number, body: Body<'permission_result'>): void {
    const { decision, source, message, input } = body;
    const outcome = { decision, source, changed: input !== undefined, ...(message !== undefined && { message }) };
    const request = this.#requests.get(body.requestId);
    const call = this.#calls.get(body.toolUseId);
    if (call && input) call.input = input;
    if (request) request.outcome = outcome;
    else if (call) call.request = { id: body.requestId, toolName: body.toolName, outcome };
    else
      this.items.push({ kind: 'request', key, at, request: { id: body.requestId, toolName: body.toolName, outcome } });
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
