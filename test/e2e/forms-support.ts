/** A person who answers forms when the test says, and what became of requests. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Form, FormAnswer, FormRequest } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';

export const accept = (content: FormAnswer['content']): FormAnswer => ({ action: 'accept', content });
export const allowOnce = accept({ decision: 'Allow once' });
export const decline: FormAnswer = { action: 'decline' };
export const cancel: FormAnswer = { action: 'cancel' };

export interface ShownForm {
  readonly request: FormRequest;
  readonly withdrawn: AbortSignal;
  readonly answer: (answer: FormAnswer) => void;
}

/** Leaves each form open until the test answers it. */
export class SlowPerson {
  readonly shown: ShownForm[] = [];
  readonly form: Form = (request, withdrawn) =>
    new Promise((answer) => {
      this.shown.push({ request, withdrawn, answer });
    });

  nextForm(index = 0): Promise<ShownForm> {
    return eventually(() => this.shown[index], { what: `form ${index + 1} is shown` });
  }
}

export interface OutcomeEvent {
  requestId: string;
  toolName: string;
  decision: 'allow' | 'deny';
  source: string;
  message?: string;
}

/** Every outcome that the session's events tell of, oldest first. */
export async function outcomes(h: Harness, sessionId: string): Promise<OutcomeEvent[]> {
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId });
  return events.filter(({ type }: Json) => type === 'permission_result').map(({ data }: Json) => data);
}

/** The decisions in the audit log. */
export function auditedDecisions(h: Harness): { who: string; what: string; outcome: string }[] {
  const lines = readFileSync(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  return lines
    .map((line) => JSON.parse(line))
    .filter(({ kind }) => kind === 'decision')
    .map(({ who, what, outcome }) => ({ who, what, outcome }));
}

/** The entries of the audit log that are wanted, once there are any. */
export function auditedEntries(h: Harness, wanted: (entry: Json) => boolean): Promise<Json[]> {
  const file = join(h.stateDir, 'claude-code-mcp', 'audit.jsonl');
  return eventually(
    () => {
      const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
      const found = lines.map((line) => JSON.parse(line)).filter(wanted);
      return found.length > 0 && found;
    },
    { what: 'the entry is in the audit log' },
  );
}

export function choicesOf({ requestedSchema }: FormRequest, name = 'decision'): readonly string[] {
  return (requestedSchema.properties[name] as { enum?: string[] } | undefined)?.enum ?? [];
}

/** A start may take long while other tests run. */
const START_MS = 50_000;

export async function start(h: Harness, prompt: string, args: Record<string, unknown> = {}): Promise<string> {
  const call = { prompt, cwd: h.project, sessionInitTimeoutMs: START_MS, ...args };
  const { sessionId } = await h.ok('claude_code', call, { timeout: START_MS });
  return sessionId;
}
