/** The rows that the hub stores, and the changes made to them. See `docs/store.md`. */

import { z } from 'zod';
import { RuleContent } from './standing-rules.ts';
import { REQUEST_KINDS, ROLES, SESSION_STATES, TOKEN_KINDS, VERDICTS } from './enums.ts';

/** Sorts alike in JavaScript, SQLite and Postgres, and is a legal part of every key. */
export const StoreId = z.string().regex(/^[\x21-\x7e]{1,200}$/);
/** Milliseconds since 1970. */
const Time = z.int().nonnegative();
const JsonObject = z.record(z.string(), z.unknown());
/** Text from elsewhere that is only searched or compared. Postgres has no NUL in text. */
const Text = z.string().regex(/^[^\0]*$/);

/**
 * One incarnation of one hub. A restarted hub has a higher fencing number, and its earlier incarnation may no longer
 * write.
 */
export const HubRef = z.object({ hub: StoreId, fence: z.int().positive() });
export type HubRef = z.infer<typeof HubRef>;

export const StoredSession = z.object({
  id: StoreId,
  /** Whom it belongs to. */
  principal: Text,
  title: Text.optional(),
  cwd: Text,
  /** As it was started, without values of `env`, `mcpServers` and `settings`. */
  options: JsonObject,
  /** The secrets that must be provided before it can run again. */
  secretNames: z.array(z.string()),
  /**
   * A workspace that is not a plain directory contains work: such a session is kept until it is applied or discarded.
   */
  workspace: z.looseObject({ type: z.string() }),
  totals: JsonObject,
  state: z.looseObject({ tag: z.enum(SESSION_STATES) }),
  createdAt: Time,
  lastActiveAt: Time,
  /** When it was put away, if it is. */
  archivedAt: Time.optional(),
  /** The only hub that may change it. */
  runsOn: HubRef,
  /** Another hub may claim it once that one's lease has expired. All others wait for the machine they run on. */
  movable: z.literal(true).optional(),
});
export type StoredSession = z.infer<typeof StoredSession>;

/** A message that has not been passed to Claude Code yet. */
export const StoredMessage = z.object({ id: StoreId, sessionId: StoreId, at: Time, content: z.unknown() });
export type StoredMessage = z.infer<typeof StoredMessage>;

export const RequestOutcome = z.looseObject({
  decision: z.enum(VERDICTS),
  /** The principal, or what settled it automatically. */
  by: z.string(),
  source: z.string(),
  at: Time,
  /** The hub that stored it, and audits it. */
  hub: z.string().optional(),
  /** Display name of the principal. */
  byName: z.string().optional(),
  always: z.literal(true).optional(),
  rule: z.object({ id: z.string(), author: z.string() }).optional(),
  /** A rule or an earlier answer had decided it: nobody was asked. */
  unasked: z.literal(true).optional(),
});
export type RequestOutcome = z.infer<typeof RequestOutcome>;

export const StoredRequest = z.object({
  id: StoreId,
  sessionId: StoreId,
  kind: z.enum(REQUEST_KINDS),
  /** Tool, input, plan, questions: everything that has to be decided, in full. */
  ask: JsonObject,
  createdAt: Time,
  expiresAt: Time.optional(),
  outcome: RequestOutcome.optional(),
});
export type StoredRequest = z.infer<typeof StoredRequest>;

export const StoredEvent = z.object({
  sessionId: StoreId,
  /** Rises by one within a session, from 1. */
  id: z.int().positive(),
  at: Time,
  type: StoreId,
  /** Dropped last: requests, decisions, results, errors. */
  keep: z.boolean(),
  data: z.unknown(),
});
export type StoredEvent = z.infer<typeof StoredEvent>;

export const CommandProgress = z.discriminatedUnion('status', [
  z.object({ status: z.literal('queued') }),
  z.object({ status: z.literal('taken'), by: HubRef, at: Time }),
  /** It has changed what it was to change; whoever sent it still waits for what comes of it. */
  z.object({ status: z.literal('carriedOut'), at: Time, result: z.unknown() }),
  z.object({ status: z.literal('done'), at: Time, result: z.unknown() }),
  z.object({ status: z.literal('failed'), at: Time, error: z.string() }),
  /** It was started, and its outcome can no longer be determined: it is never run again. */
  z.object({ status: z.literal('unknown'), at: Time, check: z.string() }),
]);
export type CommandProgress = z.infer<typeof CommandProgress>;

export const StoredCommand = z.object({
  id: StoreId,
  /** The session it is for; commands of one session are taken one at a time, in order. */
  sessionId: StoreId,
  /** The hub it is meant for, which takes it if there is no such session yet. */
  placedOn: StoreId.optional(),
  principal: Text,
  /** A repeat by the same principal with the same key is the same command. */
  key: Text.optional(),
  body: JsonObject,
  createdAt: Time,
  progress: CommandProgress,
});
export type StoredCommand = z.infer<typeof StoredCommand>;

/** What was allowed while no process could hear it: valid for one repetition of the same call. */
export const StoredGrant = z.object({
  id: StoreId,
  sessionId: StoreId,
  requestId: StoreId,
  tool: z.string(),
  /** Digest of the canonical input. */
  input: z.string(),
  cwd: z.string(),
  /** What the call would have acted on when permission was requested; compared as a whole. */
  target: z.string().optional(),
  updatedInput: JsonObject.optional(),
  /** Permissions for the rest of the session that go with it. */
  updatedPermissions: z.array(z.unknown()).optional(),
  /** Who allowed it. */
  source: z.enum(['caller', 'human']).optional(),
  createdAt: Time,
  expiresAt: Time,
  /** Which call used it, or that none did. */
  closed: z
    .discriminatedUnion('how', [
      z.object({ how: z.literal('used'), at: Time, toolUseId: z.string() }),
      z.object({ how: z.literal('lapsed'), at: Time }),
    ])
    .optional(),
});
export type StoredGrant = z.infer<typeof StoredGrant>;

export const StoredToken = z.object({
  id: StoreId,
  kind: z.enum(TOKEN_KINDS),
  name: Text,
  hash: StoreId,
  role: z.enum(ROLES),
  attended: z.boolean(),
  /** Of a sign-in: the browser and its system. */
  device: Text.optional(),
  createdAt: Time,
  expiresAt: Time.optional(),
  revokedAt: Time.optional(),
});
export type StoredToken = z.infer<typeof StoredToken>;

/** A browser that is notified of what waits, until it unsubscribes or its credential is no longer valid. */
export const StoredSubscription = z.object({
  id: StoreId,
  /** The token or sign-in that it was made with. */
  credential: StoreId,
  /** Whose requests it hears of, unless it reads all. */
  principal: Text,
  readsAll: z.boolean(),
  /** What people recognise the browser by. */
  name: Text.optional(),
  endpoint: z.url(),
  /** The browser's keys, as base64url. */
  p256dh: z.string(),
  auth: z.string(),
  createdAt: Time,
});
export type StoredSubscription = z.infer<typeof StoredSubscription>;

/** What one subscription has been told about one request. */
export const StoredPush = z.object({
  subscriptionId: StoreId,
  requestId: StoreId,
  /** How often it was announced. */
  sent: z.int().nonnegative(),
  /** Failed attempts in a row, and when the first of them was; 0 without any. */
  attempts: z.int().nonnegative(),
  failingSince: Time,
  /** Nobody sends anything before: it is being sent, or has failed. */
  notBefore: Time,
  /** When it is announced again, unless it is settled first. */
  remindAt: Time,
});
export type StoredPush = z.infer<typeof StoredPush>;

/** A file of Claude Code's transcript: the conversation itself, or that of a sub-agent by its path below it. */
export const TranscriptPart = z.object({ sessionId: StoreId, subpath: Text.min(1).optional() });
export type TranscriptPart = z.infer<typeof TranscriptPart>;

/** A line of it, as Claude Code wrote it. Most have a `uuid`. */
export const TranscriptEntry = z.looseObject({ type: z.string(), uuid: z.string().optional() });
export type TranscriptEntry = z.infer<typeof TranscriptEntry>;

export const StoredLease = z.object({
  ...HubRef.shape,
  /** By the store's clock. */
  expiresAt: Time,
  /** What other hubs need to know about this one: its host name, its free slots. */
  info: JsonObject,
});
export type StoredLease = z.infer<typeof StoredLease>;

/** What is left of a removed session: for those who have it on screen. */
export const StoredRemoval = z.object({ id: StoreId, principal: Text, at: Time });
export type StoredRemoval = z.infer<typeof StoredRemoval>;

export const Change = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session.put'), session: StoredSession }),
  /** A session that never came to be; the feed says that it is gone. */
  z.object({ type: z.literal('session.remove'), sessionId: StoreId, principal: Text, at: Time }),
  z.object({
    type: z.literal('event.append'),
    event: StoredEvent,
    /** Events before it were dropped without ever being stored. */
    afterDropped: z.boolean().optional(),
  }),
  z.object({ type: z.literal('message.put'), message: StoredMessage }),
  z.object({ type: z.literal('message.delivered'), sessionId: StoreId, messageId: StoreId }),
  z.object({ type: z.literal('request.open'), request: StoredRequest.omit({ outcome: true }) }),
  z.object({
    type: z.literal('request.settle'),
    sessionId: StoreId,
    requestId: StoreId,
    outcome: RequestOutcome,
  }),
  z.object({ type: z.literal('grant.add'), grant: StoredGrant.omit({ closed: true }) }),
  z.object({
    type: z.literal('grant.close'),
    sessionId: StoreId,
    grantId: StoreId,
    closed: StoredGrant.shape.closed.unwrap(),
  }),
  z.object({ type: z.literal('command.add'), command: StoredCommand.omit({ progress: true }) }),
  z.object({
    type: z.literal('command.finish'),
    sessionId: StoreId,
    commandId: StoreId,
    progress: CommandProgress,
  }),
  /** Anyone may withdraw a command that has not been taken yet. */
  z.object({ type: z.literal('command.withdraw'), commandId: StoreId, at: Time }),
  z.object({ type: z.literal('token.put'), token: StoredToken }),
  z.object({ type: z.literal('rule.put'), rule: RuleContent }),
  z.object({ type: z.literal('rule.remove'), ruleId: StoreId }),
  /** Only statistics: sent twice, it is counted twice. */
  z.object({ type: z.literal('rule.use'), ruleId: StoreId, at: Time, times: z.int().positive() }),
  z.object({ type: z.literal('setting.put'), key: StoreId, value: z.string() }),
]);
export type Change = z.infer<typeof Change>;

/** An entry of the feed: a row in its current state, at the position of its last change. */
export const FeedEntry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('session'), seq: z.int(), row: StoredSession }),
  z.object({ kind: z.literal('event'), seq: z.int(), row: StoredEvent }),
  z.object({ kind: z.literal('request'), seq: z.int(), row: StoredRequest }),
  z.object({ kind: z.literal('command'), seq: z.int(), row: StoredCommand }),
  z.object({ kind: z.literal('removal'), seq: z.int(), row: StoredRemoval }),
]);
export type FeedEntry = z.infer<typeof FeedEntry>;
