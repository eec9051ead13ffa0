const MAX_LENGTH = 200;

/** One line that is safe to show in a list: control characters would reach somebody's terminal. */
export function displayText(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (line.length <= MAX_LENGTH) return line;
  const halfOfPair = /[\uD800-\uDBFF]$/;
  return `${line.slice(0, MAX_LENGTH - 1).replace(halfOfPair, '')}…`;
}
