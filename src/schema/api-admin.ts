/** The audit log, tokens, push subscriptions and standing rules over `/api/v1`: see `api.ts`. */

import { z } from 'zod';
import { TOKEN_KINDS, VERDICTS, type RequestKind } from './enums.ts';
import { apiRole, limit, time } from './api.ts';
import { ruleFields } from './standing-rules.ts';

export const auditQuery = z.strictObject({
  /** A session id or its beginning. */
  session: z.string().max(200).optional(),
  /** The id or the name of whoever called or decided. */
  principal: z.string().max(200).optional(),
  kind: z.string().max(50).optional(),
  tool: z.string().max(200).optional(),
  decision: z.enum(VERDICTS).optional(),
  since: time.optional(),
  until: time.optional(),
  /** Matched anywhere in the entry, or in the command or file that a request was about. */
  search: z.string().max(200).optional(),
  /** `next` from the previous page: older entries. */
  after: z.string().max(200).optional(),
  limit: limit(1000, 100),
});
export const apiAuditEntry = z.looseObject({
  time: z.string(),
  kind: z.string(),
  session: z.string().optional(),
  /** Who did it, or whose session it is. */
  principal: z.string().optional(),
  /** Its display name. */
  name: z.string().optional(),
  who: z.string(),
  /** The name of the person or program that did it; missing where Claude or the hub did. */
  by: z.string().optional(),
  what: z.string(),
  /** The command, file or question that a request was about, while the hub still has it. */
  target: z.string().optional(),
  outcome: z.string().optional(),
  cost: z.number().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
});
export type ApiAuditEntry = z.infer<typeof apiAuditEntry>;
/** Newest first. */
export const auditPage = z.object({ entries: z.array(apiAuditEntry), next: z.string().optional() });
export type AuditPage = z.infer<typeof auditPage>;

export const apiToken = z.object({
  id: z.string(),
  kind: z.enum(TOKEN_KINDS),
  name: z.string(),
  role: apiRole,
  attended: z.boolean(),
  /** Of a sign-in: the browser and its system. */
  device: z.string().optional(),
  createdAt: time,
  /** Of a sign-in, to within a minute. */
  lastUsedAt: time.optional(),
  /** The one that this call was made with. */
  current: z.literal(true).optional(),
  expiresAt: time.optional(),
  revokedAt: time.optional(),
  status: z.enum(['active', 'expired', 'revoked']),
});
export type ApiToken = z.infer<typeof apiToken>;

export const tokensAnswer = z.object({ tokens: z.array(apiToken) });
export type TokensAnswer = z.infer<typeof tokensAnswer>;

export const tokenBody = z.strictObject({
  name: z.string().min(1).max(100),
  role: apiRole,
  attended: z.boolean().default(false),
  /** As on the command line: `12h`, `30d` or `never`; 90 days if omitted. */
  expires: z
    .string()
    .regex(/^(?:never|[1-9]\d{0,5}[mhdwy])$/)
    .optional(),
});
export type TokenBody = z.input<typeof tokenBody>;

/** The only time the token is shown. */
export const createdToken = z.object({
  id: z.string(),
  name: z.string(),
  role: apiRole,
  attended: z.boolean(),
  token: z.string(),
  expiresAt: time.optional(),
});
export type CreatedToken = z.infer<typeof createdToken>;
export const revokedToken = z.object({ token: apiToken });

// ── push notifications ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A browser that is notified when something waits. */
export const pushSubscription = z.object({
  id: z.string(),
  /** What people recognise the browser by. */
  name: z.string().optional(),
  /** The host of its push service. */
  service: z.string(),
  createdAt: time,
  /** It was made with the credential of this call. */
  current: z.boolean(),
});
export type PushSubscriptionView = z.infer<typeof pushSubscription>;

export const pushAnswer = z.object({
  /** The hub's key, which a browser subscribes with. */
  publicKey: z.string(),
  /** The caller's own. */
  subscriptions: z.array(pushSubscription),
});
export type PushAnswer = z.infer<typeof pushAnswer>;

/** What a browser's `PushSubscription` becomes as JSON. */
export const pushSubscriptionBody = z.strictObject({
  endpoint: z.string().max(2_000),
  keys: z.strictObject({ p256dh: z.string().max(200), auth: z.string().max(100) }),
  expirationTime: z.number().nullable().optional(),
  name: z.string().trim().min(1).max(100).optional(),
});
export type PushSubscriptionBody = z.input<typeof pushSubscriptionBody>;
export const pushSubscriptionAnswer = z.object({ subscription: pushSubscription });
export type PushSubscriptionAnswer = z.infer<typeof pushSubscriptionAnswer>;

/** Everything that a notification says. Neither input nor output, nor where anything is. */
export type PushPayload =
  | {
      readonly state: 'open' | 'settled';
      readonly requestId: string;
      readonly kind?: RequestKind;
      readonly tool?: string;
      readonly ageMs?: number;
    }
  | { readonly state: 'test' };

// ── standing rules ─────────────────────────────────────────────────────────────────────────────────────────────────────

export const apiRule = ruleFields.extend({
  id: z.string(),
  expiresAt: time.optional(),
  /** The principal that made it or changed it last. */
  createdBy: z.string(),
  /** Its display name. */
  author: z.string(),
  createdAt: time,
  enabled: z.boolean(),
  uses: z.int().nonnegative(),
  lastUsedAt: time.optional(),
  /** Why it decides nothing at present. */
  inactive: z.enum(['disabled', 'expired', 'author']).optional(),
  /** What whoever reads it should know. */
  warnings: z.array(z.string()).optional(),
  /** Whether whoever asks may change it. */
  mayChange: z.boolean(),
});
export type ApiRule = z.infer<typeof apiRule>;

export const rulesAnswer = z.object({ rules: z.array(apiRule) });
export type RulesAnswer = z.infer<typeof rulesAnswer>;
export const ruleAnswer = z.object({ rule: apiRule });
export type RuleAnswer = z.infer<typeof ruleAnswer>;

const MAX_RULES_AT_ONCE = 1_000;

const newRule = z.strictObject({
  ...ruleFields.shape,
  expiresAt: time.optional(),
  /** The request it is made for: `directory` is its repository unless given. */
  requestId: z.string().max(200).optional(),
});

export const ruleBody = newRule;
export type RuleBody = z.input<typeof ruleBody>;

/** What a file of rules or a pack holds, at most as many as a replay takes. */
export const rulesBody = z.strictObject({
  rules: z.array(newRule.omit({ requestId: true })).max(MAX_RULES_AT_ONCE),
});
export type RulesBody = z.input<typeof rulesBody>;

export const madeRules = z.object({
  /** In the order in which the rules were given. */
  ids: z.array(z.string()),
});
export type MadeRules = z.infer<typeof madeRules>;

/** `null` removes a field. */
export const rulePatchBody = z.strictObject({
  decision: ruleFields.shape.decision.optional(),
  tool: ruleFields.shape.tool.optional(),
  match: ruleFields.shape.match.nullable(),
  directory: ruleFields.shape.directory.nullable(),
  principal: ruleFields.shape.principal.nullable(),
  note: ruleFields.shape.note.nullable(),
  expiresAt: time.nullable().optional(),
  enabled: z.boolean().optional(),
});
export type RulePatchBody = z.input<typeof rulePatchBody>;

/** A rule that is held against what was asked, without being made; or several, as a pack has them. */
export const replayBody = z.strictObject({
  ...newRule.partial().shape,
  rules: z.array(ruleFields).max(MAX_RULES_AT_ONCE).optional(),
  /** How far back, in days. */
  days: z.int().min(1).max(365).optional(),
});
export type ReplayBody = z.input<typeof replayBody>;

export const replayAnswer = z.object({
  considered: z.int(),
  matched: z.int(),
  allowed: z.int(),
  denied: z.int(),
  others: z.int(),
  requests: z.array(
    z.object({
      requestId: z.string(),
      sessionId: z.string(),
      toolName: z.string(),
      summary: z.string(),
      decision: z.enum(VERDICTS),
      by: z.string(),
      source: z.string(),
      at: time,
    }),
  ),
  warnings: z.array(z.string()),
});
export type ReplayAnswer = z.infer<typeof replayAnswer>;

export const packsAnswer = z.object({
  packs: z.array(z.object({ name: z.string(), description: z.string(), rules: z.array(ruleFields) })),
});
export type PacksAnswer = z.infer<typeof packsAnswer>;
