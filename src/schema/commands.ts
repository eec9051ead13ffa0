/** Everything that can be asked of a session, as data: what tools, API and other hubs send, and what the queue stores. */

import { z } from 'zod';
import { APPLY_MODES, DIFF_SUBJECTS, VERDICTS, WHEN_BUSY } from './enums.ts';
import { advancedOptions, commonOptions, permissionUpdate, permissionMode, sessionOptions } from './session-options.ts';

/** One answer to one question: a label, free text, or several labels. */
const questionAnswer = z.union([z.string(), z.array(z.string())]);
export type QuestionAnswer = z.infer<typeof questionAnswer>;

/** By question, or in the order of the questions. */
export const answers = z.union([z.record(z.string(), questionAnswer), z.array(questionAnswer)]);

export const answer = z.object({
  decision: z.enum(VERDICTS),
  message: z.string().optional(),
  /** With a denial: also stop the turn. */
  interrupt: z.boolean().optional(),
  updatedInput: z.record(z.string(), z.unknown()).optional(),
  updatedPermissions: z.array(permissionUpdate).optional(),
  /** Also allow, in this session, what Claude Code suggests allowing from now on. */
  always: z.boolean().optional(),
  /** With an allowance of an old request: the digest of what has changed since it was asked. */
  confirm: z.string().optional(),
  answers: answers.optional(),
});
export type Answer = z.infer<typeof answer>;

const started = {
  options: sessionOptions,
  /** Defaults for what the caller did not set. */
  defaults: sessionOptions.optional(),
};

/** How a session that exists only on disk may be resumed. */
const diskResume = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('token'),
    token: z.string().optional(),
    resumeSessionAt: z.string().optional(),
    ...started,
  }),
  z.object({ kind: z.literal('open'), ...started }),
]);
export type DiskResume = z.infer<typeof diskResume>;

const sessionId = z.string();

/** How one of several attempts at a task differs from the others. */
const attempt = z
  .strictObject({
    prompt: z
      .string()
      .refine((text) => text.trim() !== '', 'must not be blank')
      .meta({ note: 'The prompt of this attempt.', whenOmitted: 'that of the call' }),
    model: commonOptions.model,
    effort: advancedOptions.effort,
  })
  .partial();
export type Attempt = z.infer<typeof attempt>;

const ATTEMPTS = { least: 2, most: 8 };

/** As callers ask for them: how many, or what differs. */
export const attemptsOption = z.union([
  z.int().min(ATTEMPTS.least).max(ATTEMPTS.most),
  z.array(attempt).min(ATTEMPTS.least).max(ATTEMPTS.most),
]);

export function attemptList(asked: z.infer<typeof attemptsOption> | undefined): Attempt[] | undefined {
  return typeof asked === 'number' ? Array.from({ length: asked }, () => ({})) : asked;
}

const start = z.object({
  kind: z.literal('start'),
  prompt: z.string(),
  ...started,
  /** Start the task this many times, each in its own worktree. */
  attempts: z.array(attempt).optional(),
  /** Text can be read while it is written. */
  streamsText: z.boolean().optional(),
});

const reply = z.object({
  kind: z.literal('reply'),
  sessionId,
  prompt: z.string(),
  fork: z.boolean().optional(),
  whenBusy: z.enum(WHEN_BUSY).optional(),
  model: z.string().optional(),
  permissionMode: permissionMode.optional(),
  permissionRequestTimeoutMs: z.number().optional(),
  sessionInitTimeoutMs: z.number().optional(),
  /** As for a start; for a session that this reply brings to the server. */
  streamsText: z.boolean().optional(),
  disk: diskResume,
});

export const Command = z.discriminatedUnion('kind', [
  start,
  reply,
  z.object({ kind: z.literal('respond'), sessionId, requestId: z.string(), answer }),
  /** A person's answer in a form that another hub showed. */
  z.object({ kind: z.literal('form'), sessionId, requestId: z.string(), answer }),
  /** What has changed since a request was asked, as seen from the machine that the session runs on. */
  z.object({ kind: z.literal('examine'), sessionId, requestId: z.string() }),
  z.object({ kind: z.literal('interrupt'), sessionId }),
  z.object({ kind: z.literal('rename'), sessionId, title: z.string() }),
  z.object({ kind: z.literal('archive'), sessionId, archived: z.boolean() }),
  /** Takes back a message that is still queued, or puts other words in its place. */
  z.object({ kind: z.literal('withdraw'), sessionId, messageId: z.string(), replacement: z.string().optional() }),
  z.object({ kind: z.literal('cancel'), sessionId }),
  z.object({ kind: z.literal('rewind'), sessionId, toUserMessage: z.string(), dryRun: z.boolean() }),
  z.object({
    kind: z.literal('diff'),
    sessionId,
    maxBytes: z.number(),
    offset: z.number(),
    /** `applied`: what the last `apply` changed. If given, the answer also says what that was. */
    of: z.enum(DIFF_SUBJECTS).optional(),
  }),
  z.object({
    kind: z.literal('apply'),
    sessionId,
    mode: z.enum(APPLY_MODES),
    message: z.string().optional(),
    /** Also discard the other attempts of the same start. */
    discardOthers: z.boolean().optional(),
  }),
  z.object({ kind: z.literal('discard'), sessionId, force: z.boolean(), deleteBranch: z.boolean().optional() }),
]);
export type Command = z.infer<typeof Command>;
export type CommandKind = Command['kind'];
export type CommandOf<Kind extends CommandKind> = Extract<Command, { kind: Kind }>;
