import { digestOf } from '../../engine/requests/grants.ts';
import { lineDiff } from '../../text/line-diff.ts';
import { field, visibleLine, visibleText } from '../../mcp/forms/form.ts';
import type { ApiRequest, RequestOutcomeView } from '../../schema/api.ts';
import { writtenWords } from '../../schema/enums.ts';
import { localTime } from '../../text/columns.ts';
import { foldBlankLines, isBlankLine } from '../../text/invisible.ts';
import type { Paint } from '../terminal/terminal.ts';
import { shortAge } from './client.ts';

export interface Question {
  readonly question: string;
  readonly header: string;
  readonly multiSelect: boolean;
  readonly options: readonly {
    readonly label: string;
    readonly description: string;
    readonly others: Readonly<Record<string, unknown>>;
  }[];
  readonly others: Readonly<Record<string, unknown>>;
}

/** Identifies what was shown: an unattended answer names it, so that it is for this input and no other. */
export function requestDigest({ toolName, input }: Pick<ApiRequest, 'toolName' | 'input'>): string {
  return digestOf({ toolName, input });
}

/**
 * A request with its whole input. Everything a session wrote has its invisible characters spelled out, and every line of
 * it is marked with a bar, so that none can pass for a line of this command.
 */
export function requestLines(request: ApiRequest, { id, paint, now }: ShownAs): string[] {
  const { session, said = '', decisionReason, blockedPath, alwaysAllows, expiresAt, agentID } = request;
  const from = [
    `session ${request.sessionId.slice(0, 8)}`,
    ...(session.title === undefined ? [] : [visibleLine(session.title.split('\n')[0] ?? '').slice(0, 60)]),
    visibleLine(session.cwd),
    visibleLine(session.owner.name),
  ];
  const asked = `asked ${shortAge(now - Date.parse(request.createdAt))} ago`;
  const expiry = expiresAt === undefined ? [] : [`denied in ${shortAge(Date.parse(expiresAt) - now)} if unanswered`];
  return [
    `${paint.bold(heading(request))}${agentID === undefined ? '' : ' (a sub-agent asks)'}  ${paint.dim([id, asked, ...expiry].join(' · '))}`,
    paint.dim(from.join(' · ')),
    ...(said.trim() === '' ? [] : named('Claude said', said, paint)),
    ...bodyLines(request, paint),
    ...(decisionReason === undefined ? [] : named('asked because', decisionReason, paint)),
    ...(blockedPath === undefined ? [] : named('because of', blockedPath, paint)),
    ...(alwaysAllows === undefined ? [] : named('"always" also allows, in this session', alwaysAllows, paint)),
    ...(request.outcome ? [outcomeLine(request.outcome, paint)] : []),
  ];
}

export interface ShownAs {
  /** As the user can give it. */
  readonly id: string;
  readonly paint: Paint;
  readonly now: number;
}

export function outcomeLine(outcome: RequestOutcomeView, paint: Paint): string {
  const { decision, by, source, at, message, inputChanged } = outcome;
  const word = decision === 'allow' ? paint.green('Allowed') : paint.red('Denied');
  const itself = SETTLED_BY[source];
  const who = itself === undefined ? `by ${visibleLine(by)}` : `because ${itself}`;
  const written = writtenWords(message);
  const words = written === '' ? '' : `: ${visibleLine(written.replaceAll('\n', ' '))}`;
  return `${word} ${who}${inputChanged === true ? ', with changes' : ''} (${localTime(Date.parse(at))})${words}`;
}

/** Where only the kind of whoever decided is known. */
export function decidedBy(source: string): string {
  const itself = SETTLED_BY[source];
  if (itself !== undefined) return `because ${itself}`;
  return `by ${DECIDERS[source] ?? visibleLine(source)}`;
}

const DECIDERS: Readonly<Partial<Record<string, string>>> = {
  human: 'a person',
  caller: 'the caller',
  rule: 'a standing rule',
};

const SETTLED_BY: Readonly<Partial<Record<string, string>>> = {
  timeout: 'nobody answered in time',
  cancel: 'the turn was stopped',
  interrupt: 'the turn was interrupted',
  shutdown: 'the hub stopped',
  policy: 'a rule of the operator says so',
};

export function heading({ type, toolName }: Pick<ApiRequest, 'type' | 'toolName'>): string {
  switch (type) {
    case 'permission':
      return visibleLine(toolName.slice(0, 200));
    case 'plan_review':
      return 'Plan to review';
    case 'user_question':
      return 'Question';
  }
}

function bodyLines(request: ApiRequest, paint: Paint): string[] {
  const { type, input, plan, description } = request;
  switch (type) {
    case 'user_question':
      return [
        ...questionsOf(request).flatMap((one) => questionLines(one, paint)),
        ...fields(input, ['questions'], paint),
      ];
    case 'plan_review':
      return [
        ...(plan === undefined || plan.trim() === '' ? ['No written plan.'] : named('plan', plan, paint)),
        ...fields(input, input['plan'] === plan ? ['plan'] : [], paint),
      ];
    case 'permission':
      return [
        ...(description === undefined || Object.values(input).includes(description)
          ? []
          : named('about', description, paint)),
        ...toolLines(request, paint),
      ];
  }
}

/** A file change as a diff, everything else field by field. */
function toolLines({ toolName, input, edit }: ApiRequest, paint: Paint): string[] {
  const { old_string: before, new_string: after, content, command } = input;
  if (toolName === 'Edit' && typeof before === 'string' && typeof after === 'string') {
    const { removed, added, ...shared } = lineDiff(before, after);
    const context = (lines: readonly string[]): string[] => lines.map((line) => bar(`  ${visibleLine(line)}`));
    return [
      ...fields(input, ['old_string', 'new_string'], paint),
      `change${edit === undefined ? '' : ` at line ${edit.line}`}:`,
      ...context([...(edit?.before ?? []), ...shared.before]),
      ...marked('-', removed, paint.red),
      ...marked('+', added, paint.green),
      ...context([...shared.after, ...(edit?.after ?? [])]),
    ];
  }
  if (toolName === 'Write' && typeof content === 'string') {
    const lines = content.replace(/\r?\n$/, '').split(/\r?\n/);
    return [
      ...fields(input, ['content'], paint),
      content === '' ? 'content: empty' : 'content:',
      ...(content === '' ? [] : marked('+', lines, paint.green)),
    ];
  }
  if (typeof command === 'string')
    return [
      'command:',
      ...visibleText(command)
        .split('\n')
        .map((line) => bar(paint.bold(line))),
      ...fields(input, ['command'], paint),
    ];
  return Object.keys(input).length === 0 ? ['Called without any input.'] : fields(input, [], paint);
}

function fields(input: Readonly<Record<string, unknown>>, except: readonly string[], paint: Paint): string[] {
  return Object.entries(input)
    .filter(([name]) => !except.includes(name))
    .flatMap(([name, value]) => named(name, typeof value === 'string' ? value : JSON.stringify(value, null, 2), paint));
}

function named(name: string, value: string, paint: Paint): string[] {
  const [first = '', ...rest] = field(visibleLine(name), visibleText(value)).split('\n');
  const colon = first.indexOf(': ');
  return [colon < 0 ? paint.dim(first) : `${paint.dim(first.slice(0, colon + 1))}${first.slice(colon + 1)}`, ...rest];
}

/** Runs of blank lines are counted: what follows them would be out of sight. */
function marked(mark: string, lines: readonly string[], colour: (text: string) => string): string[] {
  return foldBlankLines(
    lines.map((line) => ({ isBlank: isBlankLine(line), text: `${mark} ${visibleLine(line)}` })),
    ({ isBlank }) => (isBlank ? 'blank' : undefined),
    ({ length }) => ({ isBlank: true, text: `⟨${mark} ${length} blank lines⟩` }),
  ).map(({ text }) => bar(colour(text)));
}

function bar(line: string): string {
  return `│ ${line}`;
}

export function questionsOf({ questions, input }: Pick<ApiRequest, 'questions' | 'input'>): Question[] {
  const all = questions ?? input['questions'];
  return (Array.isArray(all) ? (all as unknown[]) : []).map((one) => {
    const { question, header, multiSelect, options, ...others } = (one ?? {}) as Record<string, unknown>;
    return {
      question: textOf(question),
      header: textOf(header),
      multiSelect: multiSelect === true,
      options: (Array.isArray(options) ? (options as Record<string, unknown>[]) : []).map(
        ({ label, description, ...rest }) => ({ label: textOf(label), description: textOf(description), others: rest }),
      ),
      others,
    };
  });
}

function questionLines({ question, header, options, multiSelect, others }: Question, paint: Paint): string[] {
  return [
    ...named(header === '' ? 'question' : header, question, paint),
    ...options.flatMap(({ label, description, others: more }, index) => [
      `  ${paint.bold(String(index + 1))}. ${visibleLine(label)}${description === '' ? '' : `  ${paint.dim(visibleLine(description))}`}`,
      ...fields(more, [], paint),
    ]),
    ...fields(others, [], paint),
    ...(multiSelect ? [paint.dim('  several may be chosen')] : []),
  ];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
