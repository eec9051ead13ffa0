/**
 * Everything that goes over `/api/v1`, one schema for each shape. The hub parses with them, and the OpenAPI document
 * and the dashboard's types are derived from them. Times are ISO 8601 in UTC; inapplicable fields are omitted, never
 * null.
 */

import { z } from 'zod';
import { APPLY_MODES, PRINCIPAL_KINDS, REACHES, ROLES, SESSION_STATES, VERDICTS, WHEN_BUSY } from './enums.ts';
import { appliedShown } from './listed-sessions.ts';
import { LastAction } from './own-action.ts';
import { action, callResult, compactStatus, stale, toolInput } from './results.ts';
import { advancedOptions, permissionMode, sessionOptions } from './session-options.ts';
import { answers, attemptsOption } from './commands.ts';
import { APPROVAL_MODES } from './setting-choices.ts';
import { ruleFields } from './standing-rules.ts';

export const time = z.iso.datetime();
export const count = z.int().nonnegative();
/** From a query string, where everything is text. */
export const limit = (most: number, usual: number) => z.coerce.number().int().min(1).max(most).default(usual);
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

// ── who calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const apiRole = z.enum(ROLES);

export const apiPrincipal = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(PRINCIPAL_KINDS),
  role: apiRole,
  /** A person uses it. */
  attended: z.boolean(),
});
export type ApiPrincipal = z.infer<typeof apiPrincipal>;

/** `GET /me`: who this is, and which controls are worth showing. */
export const apiMe = z.object({
  principal: apiPrincipal,
  hub: z.object({ version: z.string(), approvals: z.enum(APPROVAL_MODES) }),
  may: z.object({
    /** Start sessions and continue its own. */
    start: z.boolean(),
    /** Answer requests: of every session, of its own, or none. */
    answer: z.enum(REACHES),
    /** See the sessions of others. */
    readAll: z.boolean(),
    readAudit: z.boolean(),
    manageTokens: z.boolean(),
  }),
  /** For those who may start sessions: where and how. */
  starts: z
    .object({
      modes: z.array(permissionMode),
      home: z.string(),
      /** Missing if the operator sets no limit. */
      directories: z.array(z.string()).optional(),
    })
    .optional(),
});
export type ApiMe = z.infer<typeof apiMe>;

/** For 30 days instead of 12 hours, on a device that only its owner uses. */
const stay = z.boolean().optional();
/** `POST /sign-in`: with the code of `hub open`, or with a token. Sets the cookie. */
export const signInBody = z.union([
  z.strictObject({ code: z.string().min(1).max(200), stay }),
  z.strictObject({ token: z.string().min(1).max(500), stay }),
]);
export type SignInBody = z.infer<typeof signInBody>;
/** Without the key the cookie is useless: it goes into the `X-Claude-Code-Key` header of every call. */
export const signInAnswer = z.object({ key: z.string(), principal: apiPrincipal, expiresAt: time });
export type SignInAnswer = z.infer<typeof signInAnswer>;

/** `POST /sign-in-codes`: the code of a link that signs another device in, once, within two minutes. */
export const signInCode = z.object({ code: z.string() });

// ── errors ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

export const API_ERROR_CODES = [
  'INVALID_ARGUMENT',
  'SESSION_NOT_FOUND',
  'SESSION_BUSY',
  'PERMISSION_DENIED',
  'PERMISSION_REQUEST_NOT_FOUND',
  'TOO_MANY_SESSIONS',
  'TIMEOUT',
  'CANCELLED',
  'UNAVAILABLE',
  'INTERNAL',
  'UNAUTHENTICATED',
  'NOT_FOUND',
  'TOO_LARGE',
  'TOO_MANY_REQUESTS',
  'stale',
] as const;

/** Who decided what. */
export const requestOutcome = z.object({
  decision: z.enum(VERDICTS),
  /** The name of the decider, or what settled it automatically. */
  by: z.string(),
  source: z.string(),
  at: time,
  message: z.string().optional(),
  /** Something other than the requested input ran. */
  inputChanged: z.literal(true).optional(),
  /** What ran instead. */
  ran: toolInput.optional(),
  /** To a question, by its text. */
  answers: toolInput.optional(),
});
export type RequestOutcomeView = z.infer<typeof requestOutcome>;

export const apiError = z.object({
  error: z.object({ code: z.enum(API_ERROR_CODES), message: z.string() }),
  /** With 409 for a request that is already settled. */
  outcome: requestOutcome.optional(),
  /** With 409 for a request that may no longer mean what it meant: repeat the answer with its digest as `confirm`. */
  stale: stale.optional(),
});
export type ApiError = z.infer<typeof apiError>;

// ── sessions ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export const SESSION_CONTROLS = [
  'message',
  'fork',
  'interrupt',
  'cancel',
  'rewind',
  'apply',
  'discard',
  'archive',
] as const;

/** A session as shown in lists and the stream. */
export const apiSession = z.object({
  sessionId: z.string(),
  status: compactStatus,
  /** The same, finer: `interrupted` is at rest too. */
  state: z.enum(SESSION_STATES),
  title: z.string().optional(),
  cwd: z.string(),
  owner: z.object({ id: z.string(), name: z.string() }),
  /** One line on what was done and what is happening. */
  activity: z.string().optional(),
  createdAt: time,
  lastActiveAt: time,
  /** When it was put away; a message takes it out of the archive. */
  archivedAt: time.optional(),
  totalTurns: count,
  totalCostUsd: z.number(),
  /** It cost more than that, by an unknown amount. */
  costUnknown: z.literal(true).optional(),
  /** What it has spent since then is not reported yet. */
  costPending: z.literal(true).optional(),
  /** The session it is a copy of, and the last event of it that it continues from. */
  forkOf: z.object({ sessionId: z.string(), through: count.optional() }).optional(),
  model: z.string().optional(),
  permissionMode: permissionMode.optional(),
  backgroundTasks: count.optional(),
  /** Ids of messages that Claude Code has not taken up yet; what they say is in the detail. */
  queuedIds: z.array(z.string()).optional(),
  workspace: z
    .object({
      type: z.string(),
      path: z.string().optional(),
      branch: z.string().optional(),
      base: z.string().optional(),
      /** The checkout that a worktree was made from. */
      origin: z.string().optional(),
      state: z.string().optional(),
    })
    .optional(),
  /** The sessions of the same start, if it is one of several attempts. */
  attempts: z.array(z.string()).optional(),
  /** The hub it runs on. */
  hub: z.string(),
  cancelledReason: z.string().optional(),
  cancelledSource: z.string().optional(),
  /** What became of the last action that a person was asked about. */
  lastAction: LastAction.optional(),
  /** What the requesting principal may currently do with it. */
  may: z.array(z.enum(SESSION_CONTROLS)),
});
export type ApiSession = z.infer<typeof apiSession>;

export const apiRequest = action
  .omit({ expiresInMs: true, inputTruncated: true, inputChars: true, toolUseID: true })
  .extend({
    toolUseID: z.string().optional(),
    createdAt: time,
    /** What the sub-agent that asks was started for. */
    agent: z.string().optional(),
    sessionId: z.string(),
    /** Of the session, so that an inbox needs no second call. */
    session: z.object({
      title: z.string().optional(),
      cwd: z.string(),
      owner: z.object({ id: z.string(), name: z.string() }),
      workspace: apiSession.shape.workspace,
    }),
    status: z.enum(['open', 'settled']),
    outcome: requestOutcome.optional(),
    /** Of a single request: why allowing it needs a second look, as seen from the machine that the session runs on. */
    stale: stale.optional(),
    mayAnswer: z.boolean(),
    /** The standing rule that would answer it next time, in its repository. */
    suggestedRule: ruleFields.optional(),
    /** Why no rule can. */
    noRule: z.string().optional(),
  });
export type ApiRequest = z.infer<typeof apiRequest>;

/** A message that has not been passed to Claude Code yet. */
export const queuedMessage = z.object({ id: z.string(), at: time, text: z.string() });

export const apiSessionDetail = apiSession.extend({
  /** Its options without secrets. */
  options: z.record(z.string(), z.unknown()),
  /** Secrets that must be provided before it can run again. */
  needs: z.array(z.string()),
  /** The last answer with the evidence of the work, at rest. */
  result: callResult.optional(),
  requests: z.array(apiRequest),
  queued: z.array(queuedMessage),
  /** 0 before the first event. */
  lastEventId: count,
});
export type ApiSessionDetail = z.infer<typeof apiSessionDetail>;

export const sessionsQuery = z.strictObject({
  /** One or more, separated by commas. */
  status: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(compactStatus))
    .optional(),
  /** Matched anywhere in id, title, directory or owner. */
  search: z.string().max(200).optional(),
  /** The id of a principal. */
  owner: z.string().max(200).optional(),
  hub: z.string().max(200).optional(),
  /** Only those that are put away, or only those that are not. */
  archived: flag.optional(),
  /** `next` from the previous page. */
  after: z.string().max(500).optional(),
  limit: limit(200, 50),
});
export const sessionsPage = z.object({
  sessions: z.array(apiSession),
  next: z.string().optional(),
  unreadable: z
    .array(z.string())
    .optional()
    .describe('ids of sessions that belong on this page, but whose stored form cannot be read'),
});
export type SessionsPage = z.infer<typeof sessionsPage>;

/** `GET /directories`: what is below a directory, to choose from. */
export const directoriesQuery = z.strictObject({
  /** Absolute, or below the home directory with `~`. */
  path: z.string().min(1).max(4096),
});
export const directoriesAnswer = z.object({ path: z.string(), directories: z.array(z.string()) });
export type DirectoriesAnswer = z.infer<typeof directoriesAnswer>;

/** `GET /models`: what Claude Code offered when a session last started; none before that. */
export const modelsAnswer = z.object({
  models: z.array(
    z.object({
      /** As it is asked for. */
      value: z.string(),
      name: z.string(),
      description: z.string(),
    }),
  ),
});
export type ModelsAnswer = z.infer<typeof modelsAnswer>;

/** `POST …/rename`. */
export const renameBody = z.strictObject({ title: z.string().trim().min(1).max(200) });

/** `POST …/archive`: puts a session at rest away, or takes it back. */
export const archiveBody = z.strictObject({ archived: z.boolean().default(true) });

const prompt = z
  .string()
  .min(1)
  .max(1_000_000)
  .refine((text) => text.trim() !== '', 'must not be blank');

/** `PATCH …/messages/{message}`: other words for a message that is still queued. */
export const queuedMessageBody = z.strictObject({ prompt });

/** What the sessions that the hub still has have cost, by day, project and owner; most first, days newest first. */
export const costsAnswer = z.object({
  totalUsd: z.number(),
  days: z.array(z.object({ day: z.string(), costUsd: z.number() })),
  projects: z.array(z.object({ directory: z.string(), costUsd: z.number(), sessions: count })),
  owners: z.array(z.object({ id: z.string(), name: z.string(), costUsd: z.number(), sessions: count })),
  /** Sessions that cost more, by an unknown amount. */
  unknown: count,
});
export type CostsAnswer = z.infer<typeof costsAnswer>;

/** A start: the options of `claude_code`. Those under `advanced` may also be given at top level. */
export const startBody = z.strictObject({
  prompt,
  /** The same task several times, each in its own worktree: how many, or how each differs. */
  attempts: attemptsOption.optional(),
  ...sessionOptions.shape,
  advanced: z.strictObject(advancedOptions).partial().optional(),
});
export type StartBody = z.input<typeof startBody>;

const turnOptions = {
  /** From this turn on. */
  model: z.string().min(1).optional(),
  permissionMode: permissionMode.optional(),
};

export const messageBody = z.strictObject({
  prompt,
  /** What to do while the session is working: reject with SESSION_BUSY, or queue it until it can be taken up. */
  whenBusy: z.enum(WHEN_BUSY).default('queue'),
  ...turnOptions,
});
export type MessageBody = z.input<typeof messageBody>;

export const forkBody = z.strictObject({ prompt, ...turnOptions });
export type ForkBody = z.input<typeof forkBody>;

/** What a start, a message or a fork returns. */
export const turnAnswer = z.object({
  session: apiSession,
  /** With `attempts`: one session for each; the first is also `session`. */
  attempts: z.array(apiSession).optional(),
  warnings: z.array(z.string()).optional(),
});
export type TurnAnswer = z.infer<typeof turnAnswer>;

export const emptyBody = z.strictObject({});
/** Whether it did anything: a second cancel does not. */
export const stopAnswer = z.object({ session: apiSession, done: z.boolean() });
export type StopAnswer = z.infer<typeof stopAnswer>;

export const rewindBody = z.strictObject({
  /** The uuid of a message. */
  toUserMessage: z.string().min(1).max(200),
  /** Reports what would be restored. */
  dryRun: z.boolean().default(true),
});
export type RewindBody = z.input<typeof rewindBody>;

/** A person must allow it first: it happens when this request is allowed. */
export const awaitsPerson = z.object({ outcome: z.literal('awaits_person'), requestId: z.string() });

export const rewindAnswer = z.union([
  z.object({
    outcome: z.literal('done'),
    dryRun: z.boolean(),
    files: z.array(z.string()),
    left: z.array(z.object({ path: z.string(), why: z.string() })),
    lines: z.object({ insertions: count, deletions: count }).optional(),
  }),
  awaitsPerson,
]);
export type RewindAnswer = z.infer<typeof rewindAnswer>;

export const applyBody = z.strictObject({
  mode: z.enum(APPLY_MODES).default('merge'),
  /** Of the commit. */
  message: z.string().min(1).max(10_000).optional(),
  /** Also discard the other attempts of the same start, by force; their branches are kept. */
  discardOthers: z.boolean().optional(),
});
export type ApplyBody = z.input<typeof applyBody>;

export const applyAnswer = z.union([
  appliedShown.extend({ outcome: z.literal('applied'), commit: z.string().optional() }),
  appliedShown.pick({ others: true }).extend({ outcome: z.literal('nothing_to_apply') }),
  awaitsPerson,
]);
export type ApplyAnswer = z.infer<typeof applyAnswer>;

export const discardBody = z.strictObject({
  /** Required for unmerged work; its branch is kept even then. */
  force: z.boolean().default(false),
  /** With `force`: deletes the branch if nobody else has moved it, and keeps its last commit for a while. */
  deleteBranch: z.boolean().optional(),
});
export type DiscardBody = z.input<typeof discardBody>;

export const discardAnswer = z.union([
  z.object({
    outcome: z.literal('discarded'),
    path: z.string(),
    keptBranches: z.array(z.string()),
    deletedBranch: z.string().optional(),
    /** Where the last commit of a deleted branch is kept. */
    retired: z.object({ ref: z.string(), commit: z.string() }).optional(),
    keptDirectory: z.string().optional(),
  }),
  awaitsPerson,
]);
export type DiscardAnswer = z.infer<typeof discardAnswer>;

// ── requests ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The inbox: requests waiting for an answer, oldest first. */
export const requestsQuery = z.strictObject({
  session: z.string().max(200).optional(),
  after: z.string().max(500).optional(),
  limit: limit(200, 50),
});
export const requestsPage = z.object({ requests: z.array(apiRequest), next: z.string().optional() });
export type RequestsPage = z.infer<typeof requestsPage>;

export const answerBody = z.strictObject({
  decision: z.enum(VERDICTS),
  /** Told to Claude. */
  message: z.string().max(10_000).optional(),
  /** With `deny`: also stops the turn. */
  interrupt: z.boolean().optional(),
  /** With `allow`: replaces the input entirely. */
  updatedInput: toolInput.optional(),
  /** To a question: by its text, or in order; multiple labels as a list. */
  answers: answers.optional(),
  /** With `allow`: also what Claude Code suggests allowing from now on, in this session. */
  always: z.boolean().optional(),
  /** With `allow`: edits are no longer asked about in this session. */
  acceptEdits: z.boolean().optional(),
  /** With `allow`, for a request that is old or has changed: the digest in `stale`. */
  confirm: z.string().max(100).optional(),
});
export type AnswerBody = z.input<typeof answerBody>;
export const answeredRequest = z.object({ request: apiRequest, warnings: z.array(z.string()).optional() });
export type AnsweredRequest = z.infer<typeof answeredRequest>;
