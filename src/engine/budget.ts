import { DomainError } from '../errors/errors.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { roundUsd } from './totals.ts';

/**
 * Claude Code starts counting a budget from zero with each process, although its sum continues. The budget is the
 * session's, so each process gets what is left of it.
 */
export function withBudgetLeft(options: SessionOptions, spentUsd: number, willSpend: boolean): SessionOptions {
  const { maxBudgetUsd } = options;
  if (maxBudgetUsd === undefined) return options;
  const left = roundUsd(maxBudgetUsd - spentUsd);
  if (left > 0) return { ...options, maxBudgetUsd: left };
  if (!willSpend) return options;
  throw new DomainError(
    'PERMISSION_DENIED',
    `The session has spent $${String(roundUsd(spentUsd))} of its budget of $${String(maxBudgetUsd)} (maxBudgetUsd). Start a new session, or one with a larger budget if the operator allows it.`,
  );
}
