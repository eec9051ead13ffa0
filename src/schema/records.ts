/**
 * What is known of a session at one moment, as plain data: made by a live session, stored unchanged, and all that leaves
 * the engine. Views turn it into answers.
 */

import { z } from 'zod';
import { PRINCIPAL_KINDS, ROLES, SESSION_STATES } from './enums.ts';
import { ActionUnderWay, LastAction } from './own-action.ts';
import { permissionDenial, work } from './results.ts';
import { permissionMode, sessionOptions } from './session-options.ts';

const count = z.int().nonnegative();

/** Whose session it is. */
export const ownerRecord = z.object({
  id: z.string(),
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
  z.object({
    kind: z.literal('fork'),
    of: z.string(),
    at: z.string().optional(),
    /** The last event of the original that the copy continues from. */
    through: z.int().nonnegative().optional(),
  }),
]);

/** What the session cost, and what its last call did. */
const totalsRecord = z.object({
  turns: z.number(),
  costUsd: z.number(),
  costUnknown: z.literal(true).exactOptional(),
  /** Before the first result the cost is unknown, unless it was inherited. */
  costKnown: z.boolean(),
  /** The last running total of Claude Code that was counted. */
  countedUsd: z.number().exactOptional(),
  /** The model was called, and what that cost has not been reported. */
  spending: z.literal(true).exactOptional(),
  /** Some of the cost can never be known. */
  lost: z.literal(true).exactOptional(),
  /** What was reported on each day of the machine's calendar. */
  days: z.record(z.string(), z.number()).exactOptional(),
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

const workspaceRecord = z.discriminatedUnion('type', [
  z.object({ type: z.literal('directory') }),
  z.object({
    type: z.literal('worktree'),
    path: z.string(),
    branch: z.string(),
    base: z.string(),
    /** The checkout that it was made from. */
    origin: z.string().optional(),
  }),
]);

export const SessionRecord = z.object({
  id: z.string(),
  owner: ownerRecord,
  state: z.enum(SESSION_STATES),
  /** One line on what it is about; empty if nothing is known. */
  title: z.string(),
  createdAt: z.number(),
  lastActiveAt: z.number(),
  /** When it was put away; a message takes it out of the archive. */
  archivedAt: z.number().optional(),
  /** As it was started, without values of `env`, `mcpServers` and `settings`. */
  options: sessionOptions,
  workspace: workspaceRecord,
  /** The sessions of the same start, in order, if it is one of several attempts. */
  attempts: z.array(z.string()).optional(),
  /** What was in force of a requested sandbox when its process was last launched. */
  sandbox: z.string().optional(),
  model: z.string().optional(),
  permissionMode: permissionMode.optional(),
  tools: z.array(z.string()).optional(),
  totals: totalsRecord,
  /** One line on what was done since the prompt, and what is going on. */
  activity: z.string(),
  lastToolUseId: z.string().optional(),
  /** How long Claude Code has been silent while working. */
  quietMs: z.number(),
  backgroundTasks: count,
  /** Ids of messages that Claude Code has not taken up yet. */
  queued: z.array(z.string()).optional(),
  cancellation: z.object({ at: z.number(), reason: z.string(), source: z.string() }).optional(),
  /** How the last turn ended; only at rest is it the final answer. */
  turn: turnRecord.optional(),
  /** What was denied in the last call, and by whom. */
  denials: z.array(permissionDenial),
  /** Evidence of what the last call did. */
  work: work.optional(),
  /** What became of the last action that a person was asked about. */
  lastAction: LastAction.optional(),
  /** The first event after the last message. */
  lastMessageAt: z.int().positive(),
  /** What is needed to continue it in another process. */
  continuity: z.object({
    permissionTimeoutMs: z.number(),
    startTimeoutMs: z.number(),
    streamsText: z.boolean(),
    /** What was decided while it had no process and has not been passed on yet. */
    handover: z.array(z.string()),
    /** Allowed by a person; how it ended is not known yet. */
    actionUnderWay: ActionUnderWay.optional(),
    /** Claude Code has answered, so there is a transcript to resume. */
    hasAnswered: z.boolean(),
    /** How the turn ended whose work was still being determined. */
    reporting: z.enum(SESSION_STATES).optional(),
    /** How much of its process's output is part of this record and of the events stored with it. */
    position: z.object({ run: z.string(), line: count }).optional(),
    /** Where it starts over from if no transcript was written. */
    origin: sessionOrigin.optional(),
    /** The first event since it came from another machine: earlier changes have no checkpoints here. */
    arrivedAt: z.int().positive().optional(),
    /** The operator's rules that it was started under. */
    rules: z.record(z.string(), z.unknown()),
    /** Options whose values are never stored and must be provided before it can run again. */
    secretNames: z.array(z.string()),
    /** Names of the variables brought by the connection it was started on. Their values are never stored. */
    environment: z.array(z.string()),
    /** Another hub may take it over. */
    movable: z.boolean(),
  }),
});
export type SessionRecord = z.infer<typeof SessionRecord>;

/** What readers get of it: all but what only another process needs to continue it. */
export type ShownRecord = Omit<SessionRecord, 'continuity'>;
