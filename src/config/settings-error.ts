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
