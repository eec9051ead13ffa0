import { DomainError } from '../errors/errors.ts';

/** Deeper than any hand-written schema, agent or tool input. Recursive code runs out of stack far beyond this. */
const MAX_LEVELS = 100;

/**
 * What no schema catches: nesting so deep that recursive code fails, and keys named `__proto__`, which JSON may contain
 * and libraries silently ignore. Searched without recursion.
 */
export function checkShape(args: Readonly<Record<string, unknown>>): void {
  let level: [where: string, value: object][] = [['', args]];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_LEVELS) {
      const [parameter = ''] = level[0]?.[0].split('.', 1) ?? [];
      throw new DomainError('INVALID_ARGUMENT', `${parameter}: nested deeper than ${String(MAX_LEVELS)} levels.`);
    }
    level = level.flatMap(([where, value]) => objectsIn(where, value));
  }
}

function objectsIn(where: string, value: object): [where: string, value: object][] {
  return Object.entries(value).flatMap(([key, item]: [string, unknown]): [string, object][] => {
    const path = where === '' ? key : `${where}.${key}`;
    if (key === '__proto__') throw new DomainError('INVALID_ARGUMENT', `Unknown parameter ${path}.`);
    return typeof item === 'object' && item !== null ? [[path, item]] : [];
  });
}
