/** A person who answers forms when the test says so, the outcomes of requests, and a shared session. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Script } from '../../src/scripted-model/script.ts';
import { text, tool, type ReplyLike } from '../../src/scripted-model/reply.ts';
import type { Form, FormAnswer, FormRequest } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import { shareHarness } from '../harness/harness.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';

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

/** The outcomes in the session's events since the cursor, oldest first. */
export async function outcomes(h: Harness, sessionId: string, cursor?: number): Promise<OutcomeEvent[]> {
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, ...(cursor && { cursor }) });
  return events.filter(({ type }: Json) => type === 'permission_result').map(({ data }: Json) => data);
}

/** The decisions in the audit log since this time. */
export function auditedDecisions(h: Harness, since = 0): { who: string; what: string; outcome: string }[] {
  const lines = readFileSync(join(h.stateDir, 'claude-code-mcp', 'audit.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  return lines
    .map((line) => JSON.parse(line))
    .filter(({ kind, time }) => kind === 'decision' && Date.parse(time) >= since)
    .map(({ who, what, outcome }) => ({ who, what, outcome }));
}

/** The matching entries of the audit log, once there are this many. */
export function auditedEntries(h: Harness, matches: (entry: Json) => boolean, count = 1): Promise<Json[]> {
  const file = join(h.stateDir, 'claude-code-mcp', 'audit.jsonl');
  return eventually(
    () => {
      const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
      const found = lines.map((line) => JSON.parse(line)).filter(matches);
      return found.length >= count && found;
    },
    { what: 'the entry is in the audit log' },
  );
}

export function choicesOf({ requestedSchema }: FormRequest, name = 'decision'): readonly string[] {
  return (requestedSchema.properties[name] as { enum?: string[] } | undefined)?.enum ?? [];
}

/** A start may be slow while other tests run. */
const START_MS = 50_000;

export async function start(h: Harness, prompt: string, args: Record<string, unknown> = {}): Promise<string> {
  const call = { prompt, cwd: h.project, sessionInitTimeoutMs: START_MS, ...args };
  const { sessionId } = await h.ok('claude_code', call, { timeout: START_MS });
  return sessionId;
}

/** One request in a session that several tests share, without the forms and outcomes of the others. */
export interface Asked {
  readonly h: Harness;
  readonly sessionId: string;
  readonly script: Script;
  /** Made if the request is allowed. */
  readonly file: string;
  forms(): readonly FormRequest[];
  outcomes(): Promise<OutcomeEvent[]>;
  auditedDecisions(): ReturnType<typeof auditedDecisions>;
}

export interface SharedSession {
  readonly harness: () => Harness;
  /** Has the session make a request; its forms are shown to this person. */
  ask(person: Form, asking?: AskOptions): Promise<Asked>;
  /** From now on, forms are shown to this person. */
  setPerson(person: Form): void;
}

export interface AskOptions {
  /** What Claude does instead of making the file. */
  readonly replies?: readonly ReplyLike[];
  /** A session of its own, started with these options. */
  readonly own?: Readonly<Record<string, unknown>>;
  /** Compact tools only. */
  readonly permissionMode?: 'plan' | 'default';
}

/** For sequential tests that leave the session at rest: starting Claude Code takes most of the time of a test. */
export function shareSession(options: Omit<HarnessOptions, 'form'>): SharedSession {
  let person: Form = () => cancel;
  let shared: string | undefined;
  let isDefaultMode = true;
  let count = 0;
  const harness = shareHarness({ ...options, form: (...shown) => person(...shown) });

  async function ask(nextPerson: Form, { replies, own, permissionMode }: AskOptions = {}): Promise<Asked> {
    const h = harness();
    person = nextPerson;
    count += 1;
    const name = `made-${count}.txt`;
    // The log is written asynchronously: decisions of the previous test may still arrive.
    const [formsBefore, askedAt] = [h.forms.length, Date.now()];
    const touch = tool('Bash', { command: `touch ${name}`, description: 'make a file' });
    const script = h.model.on(`make ${name}`).reply(...(replies ?? [touch]), text('done'));
    const before = shared;
    const seen = before === undefined || own || h.toolset === 'explicit' ? undefined : await cursorOf(h, before);
    const id = await begin(h, `make ${name}`, own, permissionMode);
    const cursor = id === before ? seen : undefined;
    return {
      h,
      sessionId: id,
      script,
      file: join(h.project, name),
      forms: () => h.forms.slice(formsBefore),
      outcomes: () => outcomes(h, id, cursor),
      auditedDecisions: () => auditedDecisions(h, askedAt),
    };
  }

  async function begin(h: Harness, prompt: string, own: AskOptions['own'], mode?: 'plan' | 'default'): Promise<string> {
    if (own) return start(h, prompt, own);
    // What a failed test left behind must not fail the others.
    if (shared !== undefined && ['running', 'waiting'].includes((await h.look(shared)).status)) shared = undefined;
    const permissionMode = mode ?? (isDefaultMode ? undefined : 'default');
    isDefaultMode = permissionMode !== 'plan';
    if (shared === undefined)
      shared = permissionMode ? await start(h, prompt, { permissionMode }) : await h.begin(prompt);
    else if (permissionMode) await h.ok('claude_code_reply', { sessionId: shared, prompt, permissionMode });
    else await h.say(shared, prompt);
    return shared;
  }

  return {
    harness,
    ask,
    setPerson: (nextPerson) => {
      person = nextPerson;
    },
  };
}

async function cursorOf(h: Harness, sessionId: string): Promise<number> {
  const pollOptions = { includeEvents: false };
  const { nextCursor } = await h.ok('claude_code_check', { action: 'poll', sessionId, pollOptions });
  return nextCursor;
}
