import type { AgentSignal, Translation } from '../../src/driver/translate.ts';
import type { AgentResult, EventBody } from '../../src/schema/events.ts';

/** What a fake Claude Code emits: an event or a signal. */
export type Said = EventBody | AgentSignal;

export const STARTED: EventBody = {
  kind: 'init',
  tools: ['Bash'],
  model: 'a',
  permissionMode: 'default',
  version: '1',
  cwd: '/',
};
export const RUNNING: AgentSignal = { kind: 'state', state: 'running' };
export const IDLE: AgentSignal = { kind: 'state', state: 'idle' };

const SIGNALS: ReadonlySet<Said['kind']> = new Set<AgentSignal['kind']>([
  'state',
  'delivery',
  'file_written',
  'file_edited',
  'streamed',
]);

export function heardAs(said: Said): Translation {
  return SIGNALS.has(said.kind)
    ? { event: undefined, signals: [said as AgentSignal] }
    : { event: { body: said as EventBody }, signals: [] };
}

export function resultEvent(fields: Partial<AgentResult> = {}, answered?: string[]): EventBody {
  const result: AgentResult = {
    text: 'done',
    isError: false,
    interrupted: false,
    numTurns: 1,
    cumulativeCostUsd: 0,
    durationMs: 0,
    durationApiMs: 0,
    usage: {},
    modelUsage: {},
    permissionDenials: [],
    ...fields,
  };
  return { kind: 'result', subtype: 'success', result, ...(answered && { answered }) };
}

/** A message with one text. */
export function textEvent(text: string): EventBody {
  return { kind: 'message', role: 'assistant', blocks: [{ kind: 'text', text }] };
}
