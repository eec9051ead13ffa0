import { DomainError } from '../../errors/errors.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { roundUsd, type Sums } from '../conversation/totals.ts';

/**
 * Claude Code starts counting a budget from zero with each process, although its sum continues. The budget is the
 * session's, so each process gets what is left of it. What is left of a budget is unknown when the cost is.
 */
export function withBudgetLeft(options: SessionOptions, spent: Sums, willSpend: boolean): SessionOptions {
  const { maxBudgetUsd } = options;
  if (maxBudgetUsd === undefined) return options;
  const left = roundUsd(maxBudgetUsd - spent.costUsd);
  if (left > 0 && !(spent.costUnknown && willSpend)) return { ...options, maxBudgetUsd: left };
  if (!willSpend) return options;
  const spentUsd = `$${String(roundUsd(spent.costUsd))}`;
  if (left > 0)
    throw new DomainError(
      'PERMISSION_DENIED',
      `The session has a budget of $${String(maxBudgetUsd)} (maxBudgetUsd), and it is unknown what is left of it: Claude Code was killed during a turn, and what that cost beyond ${spentUsd} was never reported (costUnknown). Start a new session and tell it where this one stopped; its work is still there.`,
    );
  throw new DomainError(
    'PERMISSION_DENIED',
    `The session has spent ${spentUsd} of its budget of $${String(maxBudgetUsd)} (maxBudgetUsd). Start a new session, or one with a larger budget if the operator allows it.`,
  );
}
