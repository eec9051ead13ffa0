import { ApiFailure } from './hub-api.ts';
import { outcomeLine, questionsOf, requestLines, type Question } from './show-request.ts';
import type { AnsweredRequest, AnswerBody, ApiRequest, RequestOutcomeView } from '../../schema/api.ts';
import type { ReplayAnswer, RuleAnswer } from '../../schema/api-admin.ts';
import { printable } from '../../text/invisible.ts';
import { rowsOf } from '../terminal/terminal.ts';
import type { ClientContext } from './client.ts';

/** What became of a request that was put to the person. */
export type Asked =
  | { readonly kind: 'settled'; readonly request: ApiRequest }
  /** Somebody else was faster. */
  | { readonly kind: 'too late' }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'quit' };

interface Choice {
  readonly keys: readonly string[];
  readonly label: string;
  readonly does: 'allow' | 'always' | 'rule' | 'deny' | 'skip' | 'quit';
}

const ALLOW: Choice = { keys: ['a', 'y'], label: 'a allow', does: 'allow' };
const ANSWER: Choice = { keys: ['a', 'y'], label: 'a answer', does: 'allow' };
const ALWAYS: Choice = { keys: ['A'], label: 'A always', does: 'always' };
const RULE: Choice = { keys: ['r'], label: 'r always in this repository', does: 'rule' };
const DENY: Choice = { keys: ['d', 'n'], label: 'd deny', does: 'deny' };
const SKIP: Choice = { keys: ['s'], label: 's skip', does: 'skip' };
const NO: Choice = {
  keys: ['n', 'd', 'q', '\r', '\n', 'interrupt', 'end', '\u001b'],
  label: 'n no',
  does: 'quit',
};
const QUIT: Choice = { keys: ['q', 'interrupt', 'end'], label: 'q quit', does: 'quit' };

/** Shows a request whole and does with it what the person says, by one key. */
export async function putToPerson(request: ApiRequest, id: string, client: ClientContext): Promise<Asked> {
  const { terminal, signal } = client;
  const { paint } = terminal;
  if (!(await showWhole(requestLines(request, { id, paint, now: client.now() }), client))) return { kind: 'quit' };
  const choices = [
    request.type === 'user_question' ? ANSWER : ALLOW,
    ...(request.alwaysAllows === undefined ? [] : [ALWAYS]),
    ...(request.suggestedRule === undefined ? [] : [RULE]),
    DENY,
    SKIP,
    QUIT,
  ];
  let choice = await chosen(choices, client);
  while (choice === 'rule') {
    await makeRule(request, client);
    choice = await chosen(choices, client);
  }
  switch (choice) {
    case 'allow':
      return allow(request, client, {});
    case 'always':
      return allow(request, client, { always: true });
    case 'deny': {
      const message = await terminal.ask('  What to do instead (Enter for nothing): ');
      // Ctrl-C takes the denial back.
      if (signal.aborted) return { kind: 'quit' };
      return send(request, { decision: 'deny', ...(message !== '' && { message }) }, client);
    }
    case 'skip':
      return { kind: 'skipped' };
    case 'quit':
      return { kind: 'quit' };
  }
}

/** Makes the rule that answers the same next time; this request is still to be answered. */
async function makeRule({ suggestedRule, requestId }: ApiRequest, client: ClientContext): Promise<void> {
  const { api, terminal, signal } = client;
  if (!suggestedRule) return;
  const { tool, match = '', directory = '' } = suggestedRule;
  const edited =
    match === '' ? '' : await terminal.ask(printable`  ${tool}(${match}) in ${directory}: Enter, or another match: `);
  if (signal.aborted) return;
  const rule = { ...suggestedRule, ...(edited !== '' && { match: edited }) };
  try {
    const { matched, allowed, denied, warnings } = await api.post<ReplayAnswer>('/api/v1/rules/replay', rule);
    for (const warning of warnings) client.say(printable`  Note: ${warning}`);
    client.say(
      `  In the last 30 days it matches ${String(matched)} requests: people allowed ${String(allowed)} and denied ${String(denied)} of them.`,
    );
    terminal.write('  Make this rule? ');
    if ((await chosen([{ ...ALLOW, label: 'y make it' }, NO], client)) !== 'allow') return;
    const made = await api.post<RuleAnswer>('/api/v1/rules', { ...rule, requestId });
    client.say(printable`  Made: ${made.rule.id}. This request is still to be answered.`);
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    terminal.writeError(printable`  ${error.message}\n`);
  }
}

/** Shows a request whole and asks whether to allow it. */
export async function askToAllow(
  request: ApiRequest,
  id: string,
  client: ClientContext,
  more: Pick<AnswerBody, 'always'>,
): Promise<Asked> {
  const { terminal } = client;
  const lines = requestLines(request, { id, paint: terminal.paint, now: client.now() });
  if (!(await showWhole(lines, client))) return { kind: 'quit' };
  if (request.type === 'user_question') return allow(request, client, more);
  const yes: Choice = { ...ALLOW, label: more.always ? 'y always allow' : 'y allow' };
  return (await chosen([yes, NO], client)) === 'quit' ? { kind: 'quit' } : allow(request, client, more);
}

async function allow(request: ApiRequest, client: ClientContext, more: Pick<AnswerBody, 'always'>): Promise<Asked> {
  if (request.type !== 'user_question') return send(request, { decision: 'allow', ...more }, client);
  const answers: Record<string, string | string[]> = {};
  for (const question of questionsOf(request)) {
    const answer = await answerTo(question, client);
    if (client.signal.aborted || answer === undefined) return { kind: 'quit' };
    answers[question.question] = answer;
  }
  return send(request, { decision: 'allow', answers }, client);
}

/** By numbers, or in words of one's own. */
async function answerTo(
  { question, options, multiSelect }: Question,
  { terminal, signal }: ClientContext,
): Promise<string | string[] | undefined> {
  const range =
    options.length === 0 ? '' : `1-${String(options.length)}${multiSelect ? ', several with commas' : ''}, or `;
  for (;;) {
    const said = await terminal.ask(printable`  ${question} (${range}your own words): `);
    if (signal.aborted) return undefined;
    if (said === '') continue;
    const labels = said.split(',').map((part) => options[Number(part.trim()) - 1]?.label);
    if (labels.some((label) => label === undefined)) return said;
    const known = labels.filter((label) => label !== undefined);
    if (known.length > 1 && !multiSelect) continue;
    return known.length === 1 ? (known[0] ?? said) : known;
  }
}

/** Of an allow that may no longer mean what it meant: what changed, and the digest that confirms it. */
interface Stale {
  readonly changes: readonly { readonly text: string }[];
  readonly digest: string;
}

export type SentAnswer = AnswerBody & { readonly confirm?: string };

/** Answers a request, and says what became of it. `isAttended`: the person is asked once more where that is needed. */
export async function send(
  request: ApiRequest,
  body: SentAnswer,
  client: ClientContext,
  isAttended = true,
): Promise<Asked> {
  const { api, terminal } = client;
  try {
    const path = `/api/v1/requests/${encodeURIComponent(request.requestId)}/answer`;
    const answer = await api.post<AnsweredRequest>(path, body);
    const { outcome } = answer.request;
    client.say(outcome ? outcomeLine(outcome, terminal.paint) : 'Answered.');
    for (const warning of answer.warnings ?? []) client.say(printable`Note: ${warning}`);
    return { kind: 'settled', request: answer.request };
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 409) throw error;
    const { outcome, stale } = error.body as { outcome?: RequestOutcomeView; stale?: Stale };
    if (outcome) {
      terminal.writeError(`Too late: ${outcomeLine(outcome, terminal.paint)}\n`);
      return { kind: 'too late' };
    }
    if (!stale) throw error;
    terminal.writeError(printable`${error.message}\n`);
    for (const { text } of stale.changes) terminal.writeError(printable`  ! ${text}\n`);
    if (!isAttended) {
      terminal.writeError(printable`To allow it nevertheless: --confirm ${stale.digest}\n`);
      return { kind: 'skipped' };
    }
    const yes: Choice = { ...ALLOW, label: 'y allow nevertheless' };
    if ((await chosen([yes, NO], client)) === 'quit') return { kind: 'quit' };
    return send(request, { ...body, confirm: stale.digest }, client);
  }
}

async function chosen(choices: readonly Choice[], { terminal }: ClientContext): Promise<Choice['does']> {
  // A key that was pressed for an earlier question, twice perhaps, does not answer this one.
  if (!(await terminal.dropTyped())) return 'quit';
  terminal.write(`${terminal.paint.cyan('?')} ${choices.map(({ label }) => label).join(' · ')} `);
  for (;;) {
    const key = await terminal.key();
    const choice = choices.find(({ keys }) => keys.includes(key));
    if (!choice) continue;
    terminal.write(`${terminal.paint.bold(choice.label.replace(/^\S+ /, ''))}\n`);
    return choice.does;
  }
}

/** Screen by screen where it does not fit: nothing is allowed that was not on the screen. False if the person left. */
async function showWhole(lines: readonly string[], { terminal }: ClientContext): Promise<boolean> {
  // What was typed before the request was shown neither turns its pages nor answers it.
  if (!(await terminal.dropTyped())) return false;
  let used = 0;
  for (const [index, line] of lines.entries()) {
    for (const row of rowsOf(line, terminal.columns)) {
      if (terminal.rows !== undefined && used > 0 && used >= terminal.rows - 1) {
        const left = lines.length - index;
        terminal.write(terminal.paint.cyan(`── ${String(left)} more ${left === 1 ? 'line' : 'lines'}: space ──`));
        const key = await terminal.key();
        terminal.write('\r\u001b[K');
        if (key === 'q' || key === 'interrupt' || key === 'end') return false;
        used = 0;
      }
      terminal.write(`${row}\n`);
      used++;
    }
  }
  return true;
}
