import { DomainError, ownFileProblem } from '../errors/errors.ts';

/** One line for what the operator can correct; anything else is a bug, whose stack is needed. */
export function failureLine(error: unknown): string | undefined {
  const known = error instanceof DomainError && error.code !== 'INTERNAL' ? error : ownFileProblem(error);
  return known?.message.replaceAll(/\s*\n\s*/g, ' ');
}
