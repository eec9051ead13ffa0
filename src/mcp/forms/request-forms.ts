import { z } from 'zod';
import { oneLine } from '../../engine/conversation/tool-summary.ts';
import type { AlwaysOffer } from '../../engine/requests/always.ts';
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
  type Asker,
  type Form,
  type FormAbilities,
} from './form.ts';
import { questionForm } from './question-form.ts';
import { toolDetails, describeFields, type ToolDetails } from './tool-details.ts';

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
