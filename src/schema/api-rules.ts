/** Standing rules over `/api/v1`: see `api.ts`. */

import { z } from 'zod';
import { time } from './api.ts';
import { VERDICTS } from './enums.ts';
import { ruleFields } from './standing-rules.ts';

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

const newRule = z.strictObject({
  ...ruleFields.shape,
  expiresAt: time.optional(),
  /** The request it is made for: `directory` is its repository unless given. */
  requestId: z.string().max(200).optional(),
});

export const ruleBody = newRule;
export type RuleBody = z.input<typeof ruleBody>;

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
  rules: z.array(ruleFields).max(1_000).optional(),
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
