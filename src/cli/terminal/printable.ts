import { escapeInvisible, escapeInvisibleLines } from '../../text/invisible.ts';

/**
 * A text for the terminal. What is inserted into it may come from a repository, a token or a session: a control or
 * direction character in a name could rewrite what the reader sees, and a line break could add lines of its own.
 */
export function printable(strings: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return strings.map((text, index) => text + escapeInvisible(String(values[index] ?? ''))).join('');
}

/** A message of several lines. */
export function printableLines(message: string): string {
  return escapeInvisibleLines(message);
}
