/** What the server itself does with a session's work or files for a caller, where a person must allow it first. */

import { z } from 'zod';
import { APPLY_MODES, RESTS_AS } from './enums.ts';

/** What is removed with a worktree. */
const discarded = {
  /** The tip of the worktree's branch; undefined if it has none. */
  commit: z.string().optional(),
  /** A commit that only the worktree's HEAD holds. */
  looseHead: z.string().optional(),
  /** What cannot be committed and is moved aside. */
  uncommitted: z.array(z.string()),
};

/** An action with everything that pins it down: what a person allowed is what happens, or they are asked again. */
export const OwnAction = z.discriminatedUnion('action', [
  z.object({
    action: z.literal('apply'),
    mode: z.enum(APPLY_MODES),
    /** Of a commit that it creates on the base. */
    message: z.string(),
    /** The commit that is applied. */
    commit: z.string(),
    /** Where the base was. */
    onto: z.string(),
    /** Other attempts of the same start that are discarded afterwards. */
    discardOthers: z.array(z.object({ sessionId: z.string(), ...discarded })).optional(),
  }),
  z.object({
    action: z.literal('discard'),
    ...discarded,
    /** Its branch is deleted too; its last commit is kept for a while. */
    deleteBranch: z.literal(true).optional(),
  }),
  z.object({
    action: z.literal('rewind'),
    toUserMessage: z.string(),
    /** The files that are restored, with a digest of what is replaced. */
    files: z.array(z.object({ path: z.string(), state: z.string() })),
  }),
]);
export type OwnAction = z.infer<typeof OwnAction>;
export type ActionOf<Name extends OwnAction['action']> = Extract<OwnAction, { action: Name }>;

/** An action that was allowed and whose outcome is not known yet. */
export const ActionUnderWay = z.object({
  requestId: z.string(),
  action: OwnAction,
  /** The session's state once it is done: what it was before. */
  backTo: z.enum(RESTS_AS),
  /** Who allowed it, by name. */
  by: z.string().optional(),
});
export type ActionUnderWay = z.infer<typeof ActionUnderWay>;

/** What became of the last action that a person was asked about. */
export const LastAction = z
  .object({
    action: z.enum(['apply', 'discard', 'rewind']).meta({ note: '`apply`, `discard` or `rewind`.' }),
    requestId: z.string().meta({ note: 'The request that the person was asked.' }),
    outcome: z.enum(['applied', 'nothing_to_apply', 'discarded', 'rewound', 'denied', 'failed', 'unknown']).meta({
      note: '`applied`, `nothing_to_apply`, `discarded`, `rewound`, `denied`, `failed`, or `unknown` if the server stopped in the middle of it.',
    }),
    message: z.string().meta({ note: 'The same in words, with what to do about it.' }),
  })
  .meta({ note: 'What became of the last `apply`, `discard` or `rewind` that a person was asked about.' });
export type LastAction = z.infer<typeof LastAction>;
