import { z } from 'zod';
import { oneLine, summaryField } from '../../engine/conversation/tool-summary.ts';
import type { AlwaysOffer } from '../../engine/requests/always.ts';
import type { Asker } from '../../engine/requests/approvals.ts';
import { SHOWN_CHARS } from '../../engine/requests/shown-request.ts';
import type { Answer } from '../../schema/commands.ts';
import type { RequestRecord } from '../../schema/events.ts';
import { describeInForm, offerInForm } from '../../views/action-view.ts';
import {
  field,
  MAX_PATH_LENGTH,
  tooLongToAllow,
  whereAsked,
  barred,
  visibleText,
  type Form,
  type FormAbilities,
  visibleLine,
} from './form.ts';
import { questionForm } from './question-form.ts';
import type { PermissionAsk } from '../../driver/permission-ask.ts';
import { foldBlankLines, isBlankLine } from '../../text/invisible.ts';
import { lineDiff } from '../../text/line-diff.ts';

const ALLOW_ONCE = 'Allow once';
const ALWAYS_ALLOW = 'Always allow';
const DENY = 'Deny';

const REFUSED = 'The user refused this.';
const TOO_LONG = 'It was too long to show in full: do it in smaller steps.';

/** Same wording as `respond_permission`, for a client whose user is a script. */
const TOOL_WORDS: ReadonlyMap<unknown, string> = new Map([
  ['allow', ALLOW_ONCE],
  ['deny', DENY],
]);

/** May this tool be used? */
function permissionForm(asker: Asker, { ask, own }: RequestRecord): Form {
  const details = toolDetails(ask);
  const offer = offerInForm(ask);
  const choices = choicesFor(details, offer);
  const refusal = details.cutFrom === undefined ? REFUSED : `${REFUSED} ${TOO_LONG}`;
  const decision = z.preprocess((word) => TOOL_WORDS.get(word) ?? word, z.enum(choices));
  const content = z.object({ decision, message: z.string().nullish() });
  return {
    message: [
      own?.opening ??
        `Claude${ask.agentId === undefined ? '' : ' (a sub-agent)'} wants to use ${oneLine(ask.toolName, 100)}.`,
      details.text,
      ...(ask.decisionReason === undefined ? [] : [field('Asked because', oneLine(ask.decisionReason, 1_000))]),
      ...(ask.blockedPath === undefined ? [] : [field('Path', oneLine(ask.blockedPath, MAX_PATH_LENGTH))]),
      whereAsked(asker),
      ...(details.cutFrom === undefined ? [] : [tooLongToAllow(details.cutFrom)]),
      ...(choices.includes(ALWAYS_ALLOW) ? [`“${ALWAYS_ALLOW}” allows: ${describeInForm(offer) ?? ''}`] : []),
    ]
      .filter((part) => part !== '')
      .join('\n'),
    // No default: a stray Return must not approve anything.
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: choices },
        message: { type: 'string', title: 'Message', description: `With “${DENY}”: why, or what to do instead` },
      },
      required: ['decision'],
    },
    read(given) {
      const { success, data } = content.safeParse(given);
      return success ? toAnswer(data.decision, refusal, data.message ?? '', offer) : undefined;
    },
    declined: refusal,
  };
}

/** Nothing is allowed unseen. */
function choicesFor({ cutFrom }: ToolDetails, offer: AlwaysOffer): string[] {
  if (cutFrom !== undefined) return [DENY];
  return offer.kind === 'nothing' ? [ALLOW_ONCE, DENY] : [ALLOW_ONCE, ALWAYS_ALLOW, DENY];
}

function toAnswer(decision: string, refusal: string, message: string, offer: AlwaysOffer): Answer {
  switch (decision) {
    case ALLOW_ONCE:
      return { decision: 'allow' };
    case ALWAYS_ALLOW:
      return offer.kind === 'rules'
        ? { decision: 'allow', updatedPermissions: [...offer.rules] }
        : { decision: 'allow', always: true };
    default:
      return {
        decision: 'deny',
        message: message.trim() === '' ? refusal : `The user refused this: ${message.trim()}`,
      };
  }
}

const APPROVE = 'Approve and start the work';
const CHANGE = 'Ask for changes';

/** Same wording as `respond_permission`, for a client whose user is a script. */
const PLAN_WORDS: ReadonlyMap<unknown, string> = new Map([
  ['allow', APPROVE],
  ['deny', CHANGE],
]);

/** Is this plan good? */
function planForm(asker: Asker, { ask, plan = '' }: RequestRecord): Form {
  const whole = visibleText(plan.trim());
  const others = Object.keys(ask.input).filter((name) => name !== 'plan' || ask.input[name] !== plan);
  const fields = describeFields(ask.input, others, () => Infinity);
  const fullLength = whole.length + fields.join('\n').length;
  const isCut = fullLength > SHOWN_CHARS;
  const choices = isCut ? [CHANGE] : [APPROVE, CHANGE];
  const decision = z.preprocess((word) => PLAN_WORDS.get(word) ?? word, z.enum(choices));
  const content = z.object({ decision, changes: z.string().nullish() });
  return {
    message: [
      'Claude has a plan and asks to start the work.',
      whole === ''
        ? 'It did not provide a written plan.'
        : barred(isCut ? visibleText(plan.trim(), SHOWN_CHARS / 2) : whole),
      ...(isCut ? describeFields(ask.input, others) : fields),
      ...(isCut ? [tooLongToAllow(fullLength)] : []),
      whereAsked(asker),
    ].join('\n'),
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', title: 'Decision', enum: choices },
        changes: {
          type: 'string',
          title: 'Changes',
          description: `With “${CHANGE}”: what the plan should say instead`,
        },
      },
      required: ['decision'],
    },
    read(given) {
      const { success, data } = content.safeParse(given);
      if (!success) return undefined;
      return data.decision === APPROVE
        ? { decision: 'allow' }
        : { decision: 'deny', message: changesWanted(data.changes?.trim() ?? '') };
    },
    declined: 'The user does not want this plan. Ask what they want before you continue.',
  };
}

function changesWanted(changes: string): string {
  return changes === ''
    ? 'The user wants a different plan but did not say what to change: ask.'
    : `The user wants the plan changed: ${changes}`;
}

export function formFor(asker: Asker, request: RequestRecord, abilities: FormAbilities): Form {
  switch (request.kind) {
    case 'permission':
      return permissionForm(asker, request);
    case 'plan_review':
      return planForm(asker, request);
    case 'user_question':
      return questionForm(asker, request, abilities);
  }
}

const SUMMARY_CHARS = 8_000;
const OTHER_CHARS = 300;
const MAX_FIELDS = 20;

/** The fields of file-changing tools, which are shown as a diff. */
const CHANGES: Record<string, { before?: string; after: string }> = {
  Edit: { before: 'old_string', after: 'new_string' },
  Write: { after: 'content' },
  NotebookEdit: { after: 'new_source' },
};

type Call = Pick<PermissionAsk, 'toolName' | 'input'>;

interface ToolDetails {
  readonly text: string;
  /** Full length, if the text is only its beginning and end. */
  readonly cutFrom?: number;
}

/**
 * Everything a tool would be called with: the most informative field first, a file change as a diff. Truncated if too
 * long.
 */
function toolDetails(call: Call): ToolDetails {
  const whole = describe(call, { short: false });
  if (whole.length <= SHOWN_CHARS) return { text: whole };
  return { text: describe(call, { short: true }), cutFrom: whole.length };
}

function describe({ toolName, input }: Call, { short }: { short: boolean }): string {
  const change = changeOf(toolName, input, short);
  const telling = summaryField(toolName);
  const rest = Object.keys(input).filter((name) => name !== telling && !change?.fields.includes(name));
  const names = telling !== undefined && telling in input ? [telling, ...rest] : rest;
  const lines = describeFields(input, names, (name) =>
    short ? (name === telling ? SUMMARY_CHARS : OTHER_CHARS) : Infinity,
  );
  if (change) lines.push(`change:\n${barred(change.diff)}`);
  return lines.join('\n');
}

/** The named fields of an input. Where a limit applies to their length, one applies to their number too. */
function describeFields(
  input: Record<string, unknown>,
  names: readonly string[],
  maxChars: (name: string) => number = () => OTHER_CHARS,
): string[] {
  const isShort = names.some((name) => maxChars(name) !== Infinity);
  const shown = isShort ? names.slice(0, MAX_FIELDS) : names;
  const lines = shown.map((name) => describeField(name, input[name], maxChars(name)));
  return shown.length < names.length ? [...lines, `⟨${names.length - shown.length} fields not shown⟩`] : lines;
}

function describeField(name: string, value: unknown, maxChars: number): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return field(oneLine(name, Math.min(maxChars, SHOWN_CHARS)), visibleText(text, maxChars));
}

function changeOf(
  toolName: string,
  input: Record<string, unknown>,
  short: boolean,
): { diff: string; fields: string[] } | undefined {
  const change = Object.hasOwn(CHANGES, toolName) ? CHANGES[toolName] : undefined;
  if (!change) return undefined;
  const before = change.before === undefined ? '' : input[change.before];
  const after = input[change.after];
  if (typeof before !== 'string' || typeof after !== 'string') return undefined;
  return {
    diff: diffOf(before, after, { short }),
    fields: change.before === undefined ? [change.after] : [change.before, change.after],
  };
}

const MAX_LINES = 40;
const MAX_LINE_CHARS = 160;

/** What an edit changes, line by line, between the lines that both sides share. `short`: long ones are truncated. */
export function diffOf(before: string, after: string, { short }: { short: boolean }): string {
  const maxLines = short ? MAX_LINES : Infinity;
  const marked = short ? cutLine : wholeLine;
  const { removed, added, ...shared } = lineDiff(before, after);
  return [
    ...shared.before.map((line) => marked(' ', line)),
    ...some('-', removed, maxLines - Math.min(added.length, MAX_LINES / 2), marked),
    ...some('+', added, maxLines - Math.min(removed.length, MAX_LINES / 2), marked),
    ...shared.after.map((line) => marked(' ', line)),
  ].join('\n');
}

type Marked = (mark: string, line: string) => string;

/** Runs of blank lines are counted: a form's window is small, and what follows them would be out of sight. */
function some(mark: string, lines: readonly string[], most: number, marked: Marked): string[] {
  const shown = foldBlankLines(
    lines.slice(0, most).map((line) => ({ isBlank: isBlankLine(line), text: marked(mark, line) })),
    ({ isBlank }) => (isBlank ? 'blank' : undefined),
    ({ length }) => ({ text: `⟨${mark} ${length} blank lines⟩` }),
  ).map(({ text }) => text);
  return lines.length > most ? [...shown, `⟨${mark} ${lines.length - most} lines not shown⟩`] : shown;
}

function wholeLine(mark: string, line: string): string {
  return `${mark} ${visibleLine(line)}`;
}

function cutLine(mark: string, line: string): string {
  // Indentation is kept: `oneLine` would fold it.
  const [indent = ''] = /^[ \t]{0,40}/.exec(line) ?? [];
  return `${mark} ${indent.replaceAll('\t', '  ')}${oneLine(line.slice(indent.length), MAX_LINE_CHARS)}`.trimEnd();
}
