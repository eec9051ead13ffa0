/** What one check found, in plain language, and what to do about it. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'problem' | 'skipped';
  readonly found: string;
  /** Only with a problem. */
  readonly remedy?: string;
}

export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found };
}

export function problem(check: string, found: string, remedy: string): Finding {
  return { check, status: 'problem', found, remedy };
}

export function skipped(check: string, found: string): Finding {
  return { check, status: 'skipped', found };
}
