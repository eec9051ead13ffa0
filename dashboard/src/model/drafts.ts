import { signal, type Signal } from '@preact/signals';

/**
 * Unsent text. Fields come and go (rows of a long list exist only near the screen, a sign-in ends while a message is
 * being written); their contents stay until they are sent.
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

/** One person's text is not shown to the next. */
export function draftsOf(principalId: string | undefined): void {
  if (writer !== principalId) drafts.clear();
  writer = principalId;
}
