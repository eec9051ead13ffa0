/** Standing rules: decisions that a person has made in advance. */

import { z } from 'zod';
import { RULE_DECISIONS } from './enums.ts';

/** Longer commands are asked about, so that a longer rule would never match. */
export const MAX_MATCH_CHARS = 4_096;

/** Text that stays on one line and shows all of its characters. */
const plainText = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine(
      (text) => !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text),
      'must not contain line breaks or invisible characters',
    );

/** What a person writes. */
export const ruleFields = z.strictObject({
  decision: z.enum(RULE_DECISIONS),
  /** A tool's name. */
  tool: plainText(200),
  /** A command, a glob relative to `directory`, or `domain:` and a host. */
  match: plainText(MAX_MATCH_CHARS).optional(),
  /** Absolute. Missing: everywhere. */
  directory: plainText(4_096).optional(),
  /** Only for sessions of this principal. */
  principal: plainText(500).optional(),
  note: plainText(500).optional(),
});
export type RuleFields = z.infer<typeof ruleFields>;

/** A rule as it is stored. Times are milliseconds since 1970. */
export const StandingRule = ruleFields.extend({
  id: z.string().regex(/^[\x21-\x7e]{1,200}$/),
  expiresAt: z.int().nonnegative().optional(),
  /** The principal that made it or changed it last. */
  createdBy: z.string(),
  createdAt: z.int().nonnegative(),
  enabled: z.boolean(),
  uses: z.int().nonnegative(),
  lastUsedAt: z.int().nonnegative().optional(),
});
export type StandingRule = z.infer<typeof StandingRule>;

/** How often it was used is counted apart. */
export const RuleContent = StandingRule.omit({ uses: true, lastUsedAt: true });
export type RuleContent = z.infer<typeof RuleContent>;

/** A pack, and the file of rules that an embedded server reads. */
export const ruleFile = z.strictObject({
  name: plainText(100).optional(),
  description: plainText(1_000).optional(),
  rules: z
    .array(ruleFields.extend({ id: StandingRule.shape.id.optional(), expiresAt: z.iso.datetime().optional() }))
    .max(10_000),
});
export type RuleFile = z.infer<typeof ruleFile>;
