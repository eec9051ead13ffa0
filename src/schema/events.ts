/**
 * What happens in a session, as plain data. The driver creates these events once; log, store, views and dashboard read
 * them.
 */

import { z } from 'zod';
import { EVENT_TYPES, MESSAGE_ROLES, REQUEST_KINDS, RESTS_AS, VERDICTS } from './enums.ts';
import { OwnAction } from './own-action.ts';
import { permissionMode, type permissionUpdate } from './session-options.ts';
import { decidingRule, editPlace } from './results.ts';

export const EventType = z.enum(EVENT_TYPES);
export type EventType = z.infer<typeof EventType>;

/** Dropped last: without them a caller could not know what was asked, decided and answered. */
export const KEPT_LONGEST: ReadonlySet<EventType> = new Set<EventType>([
  'permission_request',
  'permission_result',
  'result',
  'error',
]);

const JsonObject = z.record(z.string(), z.unknown());

const ToolCallBlock = z.object({
  kind: z.literal('tool_call'),
  toolUseId: z.string(),
  toolName: z.string(),
  input: JsonObject,
});
export type ToolCallBlock = z.infer<typeof ToolCallBlock>;

const ToolResultBlock = z.object({
  kind: z.literal('tool_result'),
  toolUseId: z.string(),
  output: z.string(),
  isError: z.boolean(),
  exitCode: z.number().exactOptional(),
  /** How many images came with it. */
  images: z.int().positive().exactOptional(),
});
export type ToolResultBlock = z.infer<typeof ToolResultBlock>;

export const MessageBlock = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), text: z.string() }),
  z.object({ kind: z.literal('thinking'), text: z.string() }),
  ToolCallBlock,
  ToolResultBlock,
  /** An image, a document, or whatever a later version adds. */
  z.object({ kind: z.literal('other'), name: z.string() }),
]);
export type MessageBlock = z.infer<typeof MessageBlock>;

/** What Claude Code reports at the end of a turn. The cost counts from the start of the transcript, not of the turn. */
export const AgentResult = z.object({
  text: z.string(),
  isError: z.boolean(),
  interrupted: z.boolean(),
  errorSubtype: z.string().optional(),
  numTurns: z.number(),
  cumulativeCostUsd: z.number(),
  durationMs: z.number(),
  durationApiMs: z.number(),
  stopReason: z.string().optional(),
  usage: JsonObject,
  modelUsage: JsonObject,
  structuredOutput: z.unknown().optional(),
  permissionDenials: z.array(z.unknown()),
});
export type AgentResult = z.infer<typeof AgentResult>;

/** A permission request as Claude Code made it. */
export const AskRecord = z.object({
  requestId: z.string(),
  toolName: z.string(),
  input: JsonObject,
  toolUseId: z.string(),
  agentId: z.string().optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  decisionReason: z.string().optional(),
  blockedPath: z.string().optional(),
  /** From any version of Claude Code: passed back unchanged. */
  suggestions: z.array(z.custom<z.infer<typeof permissionUpdate>>()).optional(),
  /** Claude Code does not want a permanent rule to be offered. */
  onceOnly: z.boolean(),
  /** Where the tool of an MCP server comes from, as Claude Code says. */
  mcpServer: z.object({ name: z.string(), source: z.string() }).optional(),
  /** Why no rule may answer it. */
  needsPerson: z.string().optional(),
});
export type AskRecord = z.infer<typeof AskRecord>;

/** A request with everything that is shown to the decider. */
export const RequestRecord = z.object({
  id: z.string(),
  kind: z.enum(REQUEST_KINDS),
  ask: AskRecord,
  plan: z.string().optional(),
  /** What the agent that asks said about this call, in one line. */
  said: z.string().optional(),
  /** What the sub-agent that asks was started for; missing if Claude itself asks. */
  agent: z.string().optional(),
  cwd: z.string().optional(),
  /** Where it was asked, as rules see it: a worktree counts as the checkout of its repository. */
  scope: z.object({ repository: z.string(), directory: z.string() }).optional(),
  edit: editPlace.optional(),
  /** What the call would act on, if the request may outlive its process; compared as a whole. */
  target: z.string().optional(),
  /** What was checked out there, if the request may outlive its process. */
  branch: z.string().optional(),
  /** Only for a request that the server itself makes for a caller, while the session is at rest. */
  own: z
    .object({
      /** What is asked, in one line for a person. */
      opening: z.string(),
      /** The session's state once it is settled and done. */
      backTo: z.enum(RESTS_AS),
      /** What is done when it is allowed. */
      action: OwnAction,
    })
    .optional(),
  /** Times of day, for display; the expiry itself uses the monotonic clock. */
  createdAt: z.number(),
  expiresAt: z.number().optional(),
});
export type RequestRecord = z.infer<typeof RequestRecord>;

export const EventBody = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('message'),
    role: z.enum(MESSAGE_ROLES),
    blocks: z.array(MessageBlock),
    /** The call of the sub-agent that it belongs to. */
    parentToolUseId: z.string().exactOptional(),
  }),
  /** What Claude Code was told, when it was. */
  z.object({
    kind: z.literal('prompt'),
    messageId: z.string(),
    text: z.string(),
    /** How many characters at its beginning are the hub's own words. */
    preamble: z.int().positive().exactOptional(),
  }),
  /** Text that is being written. */
  z.object({ kind: z.literal('partial'), messageId: z.string().exactOptional(), text: z.string() }),
  z.object({
    kind: z.literal('init'),
    tools: z.array(z.string()),
    model: z.string(),
    permissionMode,
    version: z.string(),
    cwd: z.string(),
  }),
  z.object({ kind: z.literal('status'), permissionMode: permissionMode.exactOptional() }),
  z.object({ kind: z.literal('retry'), summary: z.string(), loginRefused: z.boolean() }),
  z.object({ kind: z.literal('background_tasks'), count: z.number() }),
  z.object({
    kind: z.literal('tool_refused'),
    toolUseId: z.string(),
    /**
     * A rule of this server that Claude Code applies, a rule or a hook in the user's settings, or something else of
     * Claude Code's: its mode, a classifier.
     */
    by: z.enum(['rule', 'disallowedTools', 'settings', 'policy']),
    message: z.string(),
    rule: decidingRule.exactOptional(),
  }),
  z.object({ kind: z.literal('permission_request'), request: RequestRecord }),
  z.object({
    kind: z.literal('permission_result'),
    requestId: z.string(),
    toolName: z.string(),
    toolUseId: z.string(),
    decision: z.enum(VERDICTS),
    source: z.string(),
    message: z.string().exactOptional(),
    /** What ran instead of what was requested. */
    input: JsonObject.exactOptional(),
    /** Of a question, by its text. */
    answers: JsonObject.exactOptional(),
    /** No process heard it: Claude is told, and has to make an allowed call again. */
    detached: z.literal(true).exactOptional(),
    by: z.literal('rule').exactOptional(),
    rule: decidingRule.exactOptional(),
  }),
  /** A call that had been allowed while no process could hear it was made again. */
  z.object({
    kind: z.literal('repeated'),
    requestId: z.string(),
    toolName: z.string(),
    toolUseId: z.string(),
    /** What ran instead of what was requested. */
    input: JsonObject.exactOptional(),
  }),
  z.object({
    kind: z.literal('result'),
    subtype: z.string(),
    result: AgentResult,
    /** The messages that it answers. */
    answered: z.array(z.string()).exactOptional(),
  }),
  /** The process was lost or never came up; this ended the turn. */
  z.object({
    kind: z.literal('error'),
    message: z.string(),
    exitCode: z.number().nullable().exactOptional(),
    signal: z.string().nullable().exactOptional(),
  }),
  /** Claude Code could not write its transcript; the turn continues. */
  z.object({ kind: z.literal('writes_lost'), name: z.string() }),
  z.object({
    kind: z.literal('rewind'),
    dryRun: z.boolean(),
    files: z.array(z.string()),
    left: z.array(z.object({ path: z.string(), why: z.string() })),
    lines: z.object({ insertions: z.number(), deletions: z.number() }).exactOptional(),
  }),
  /** What became of the work of a session. */
  z.object({
    kind: z.literal('apply'),
    outcome: z.string(),
    branch: z.string().exactOptional(),
    commit: z.string().exactOptional(),
    checkout: z.string().exactOptional(),
    /** Who asked for it or allowed it, by name. */
    by: z.string().exactOptional(),
  }),
  z.object({ kind: z.literal('discard'), outcome: z.string() }),
  /** Anything else that Claude Code reports. */
  z.object({ kind: z.literal('notice'), name: z.string(), text: z.string().exactOptional() }),
]);
export type EventBody = z.infer<typeof EventBody>;
export type MessageBody = Extract<EventBody, { kind: 'message' }>;

const Path = z.array(z.union([z.string(), z.number()]));

/** The Claude Code message as received. Only the driver knows its contents. */
export const Original = z.object({
  message: z.unknown(),
  /** Long texts that the event already contains: where each is in the event, and where it belongs in the message. */
  texts: z.array(z.object({ from: Path, to: Path })).exactOptional(),
});
export type Original = z.infer<typeof Original>;

export const SessionEvent = z.object({
  /** Rises by one within a session, from 1. */
  id: z.int().positive(),
  type: EventType,
  /** Time of day. */
  at: z.number(),
  body: EventBody,
  original: Original.exactOptional(),
});
export type SessionEvent = z.infer<typeof SessionEvent>;

/** What a change to a file looked like, as the tool that made it reported. */
export interface FileEdit {
  readonly created: boolean;
  readonly counted?: { readonly insertions: number; readonly deletions: number };
  readonly hunks: readonly { readonly header: string; readonly lines: readonly string[] }[];
  /** The whole of a file that was created. */
  readonly content?: string;
}

export function eventType(body: EventBody): EventType {
  switch (body.kind) {
    case 'message':
      return 'output';
    case 'permission_request':
    case 'permission_result':
    case 'result':
    case 'error':
      return body.kind;
    case 'writes_lost':
      return 'error';
    case 'retry':
      // A rejected login is retried for minutes: it must be visible in the short view too, so it counts as an error.
      return body.loginRefused ? 'error' : 'progress';
    case 'prompt':
    case 'partial':
    case 'init':
    case 'status':
    case 'background_tasks':
    case 'tool_refused':
    case 'repeated':
    case 'rewind':
    case 'apply':
    case 'discard':
    case 'notice':
      return 'progress';
  }
}
