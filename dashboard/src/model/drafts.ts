import { signal, type Signal } from '@preact/signals';

/**
 * What somebody began to write. Fields come and go (rows of a long list exist only near the screen, a sign-in ends while a
 * message is written); what is in them stays until it is sent.
 */
const drafts = new Map<string, Signal<unknown>>();
let writer: string | undefined;

export function draft<Value>(key: string, blank: Value): Signal<Value> {
  let known = drafts.get(key) as Signal<Value> | undefined;
  if (!known) {
    known = signal(blank);
    drafts.set(key, known);
  }
  return known;
}

export function forgetDraft(key: string): void {
  drafts.delete(key);
}

/** What one person wrote is not shown to the next. */
export function draftsOf(principalId: string | undefined): void {
  if (writer !== principalId) drafts.clear();
  writer = principalId;
}
