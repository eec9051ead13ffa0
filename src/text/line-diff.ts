export interface LineDiff {
  /** Lines that both sides share, just before the change. */
  readonly before: readonly string[];
  readonly removed: readonly string[];
  readonly added: readonly string[];
  /** Lines that both sides share, just after the change. */
  readonly after: readonly string[];
}

const CONTEXT = 2;

/** The one stretch of lines in which two texts differ. An edit is one stretch, so nothing has to be aligned. */
export function lineDiff(before: string, after: string): LineDiff {
  const old = linesOf(before);
  const now = linesOf(after);
  const head = sharedAtStart(old, now);
  const tail = sharedAtStart(old.slice(head).reverse(), now.slice(head).reverse());
  const end = old.length - tail;
  return {
    before: old.slice(Math.max(0, head - CONTEXT), head),
    removed: old.slice(head, end),
    added: now.slice(head, now.length - tail),
    after: old.slice(end, end + CONTEXT),
  };
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);
}

function sharedAtStart(a: readonly string[], b: readonly string[]): number {
  const most = Math.min(a.length, b.length);
  let count = 0;
  while (count < most && a[count] === b[count]) count++;
  return count;
}
