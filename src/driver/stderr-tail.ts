const MAX_CHARS = 8_000;
const MAX_LINES = 12;

/** What looks like a secret in a program's stderr. */
const SECRETS = [
  /\bsk-[A-Za-z0-9_-]{8,}/g,
  /\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\b([A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?))(\s*[=:]\s*)\S+/gi,
  /\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g,
];

export function redact(text: string): string {
  let redacted = text;
  for (const secret of SECRETS) {
    redacted = redacted.replace(secret, (match, name?: unknown, sign?: unknown) =>
      typeof name === 'string' && typeof sign === 'string'
        ? `${name}${sign}***`
        : match.startsWith('Bearer')
          ? 'Bearer ***'
          : '***',
    );
  }
  return redacted;
}

/** The last lines a process wrote to stderr, bounded however much it writes. */
export class StderrTail {
  #text = '';

  add(chunk: string): void {
    this.#text = (this.#text + chunk).slice(-MAX_CHARS);
  }

  lines(): string {
    return redact(this.#text.trim().split('\n').slice(-MAX_LINES).join('\n'));
  }
}
