/** A setting the operator has to correct before the server can start. The message is one line. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

const MAX_QUOTE_LENGTH = 80;

/** Quotes operator input for a one-line message: escapes line breaks and truncates long values. */
export function quote(text: string): string {
  const shown = text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}…` : text;
  return JSON.stringify(shown).replace(/[\u007f-\u009f\u2028\u2029]/g, '?');
}

/** The candidate a person most likely meant, or undefined when none is close. Case and separators do not count. */
export function nearestName(given: string, candidates: Iterable<string>): string | undefined {
  const wanted = lettersOf(given);
  if (wanted.length > MAX_NAME_LENGTH) return undefined;
  const names = [...candidates];
  const begun = wanted.length < MIN_PREFIX ? [] : names.filter((name) => lettersOf(name).startsWith(wanted));
  if (begun.length === 1) return begun[0];
  let best: { name: string; distance: number } | undefined;
  for (const name of names) {
    const letters = lettersOf(name);
    const distance = editDistance(wanted, letters);
    const tolerated = Math.max(1, Math.floor(letters.length / 3));
    if (distance <= tolerated && (best === undefined || distance < best.distance)) best = { name, distance };
  }
  return best?.name;
}

const MAX_NAME_LENGTH = 100;
/** What begins like only one of them means that one. */
const MIN_PREFIX = 3;

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** Two neighbouring letters in the wrong order are one mistake. */
function editDistance(a: string, b: string): number {
  let beforeThat: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substituted = at(previous, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwapped ? at(beforeThat, column - 2) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(substituted, swapped, at(previous, column) + 1, at(current, column - 1) + 1));
    }
    beforeThat = previous;
    previous = current;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
