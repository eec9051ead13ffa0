/** The contents of the hub's session rows, beyond what the store itself uses. */

import { z } from 'zod';
import { PRINCIPAL_KINDS, ROLES, SESSION_STATES } from './enums.ts';
import { ActionUnderWay, LastAction } from './own-action.ts';
import { callResult, work } from './results.ts';
import { permissionMode } from './session-options.ts';

const count = z.int().nonnegative();

/** Whose session it is, apart from the id. */
export const ownerRecord = z.object({
  name: z.string(),
  kind: z.enum(PRINCIPAL_KINDS),
  role: z.enum(ROLES),
  attended: z.boolean(),
});

/** How the last turn ended, as the engine knows it. */
export const turnRecord = z.object({
  text: z.string(),
  isError: z.boolean(),
  interrupted: z.boolean(),
  errorSubtype: z.string().optional(),
  stopReason: z.string().optional(),
  modelUsage: z.record(z.string(), z.unknown()),
  structuredOutput: z.unknown().optional(),
  permissionDenials: z.array(z.unknown()),
});

const sessionOrigin = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('new') }),
  z.object({ kind: z.literal('resume'), at: z.string().optional() }),
  z.object({ kind: z.literal('fork'), of: z.string(), at: z.string().optional() }),
]);

/** `StoredSession.state`: what lists and pages show, and what is needed to continue after a restart. */
export const stateRecord = z.object({
  tag: z.enum(SESSION_STATES),
  owner: ownerRecord,
  activity: z.string().optional(),
  model: z.string().optional(),
  permissionMode: permissionMode.optional(),
  backgroundTasks: count.optional(),
  cancellation: z.object({ at: z.number(), reason: z.string(), source: z.string() }).optional(),
  /** The last answer as clients are shown it, at rest. */
  result: callResult.optional(),
  turn: turnRecord.optional(),
  /** Evidence of what the last turn did. */
  work: work.optional(),
  tools: z.array(z.string()).optional(),
  /** The first event after the last message. */
  lastMessageAt: z.int().positive(),
  permissionTimeoutMs: z.number(),
  startTimeoutMs: z.number(),
  streamsText: z.boolean(),
  /** What was decided while it had no process and has not been passed on yet. */
  handover: z.array(z.string()),
  /** Allowed by a person; how it ended is not known yet. */
  actionUnderWay: ActionUnderWay.optional(),
  lastAction: LastAction.optional(),
  /** Claude Code has answered, so there is a transcript to resume. */
  hasAnswered: z.boolean(),
  /** Where it starts over from if no transcript was written. */
  origin: sessionOrigin.optional(),
  /** The first event since it came from another machine: earlier changes have no checkpoints here. */
  arrivedAt: z.int().positive().optional(),
  /** The operator's rules that it was started under. */
  rules: z.record(z.string(), z.unknown()),
  /** Names of the variables brought by the connection it was started on. Their values are never stored. */
  environment: z.array(z.string()),
});
export type StateRecord = z.infer<typeof stateRecord>;

/** `StoredSession.totals`. */
export const totalsRecord = z.object({
  turns: z.number(),
  costUsd: z.number(),
  costUnknown: z.literal(true).exactOptional(),
  /** The last running total of Claude Code that was counted. */
  countedUsd: z.number().exactOptional(),
  /** The model was called, and what that cost has not been reported. */
  spending: z.literal(true).exactOptional(),
  /** Some of the cost can never be known. */
  lost: z.literal(true).exactOptional(),
  /** Of the last call. */
  call: z.object({
    results: z.number(),
    turns: z.number(),
    costUsd: z.number(),
    durationMs: z.number(),
    durationApiMs: z.number(),
    usage: z.record(z.string(), z.number()),
  }),
});
export type TotalsRecord = z.infer<typeof totalsRecord>;
