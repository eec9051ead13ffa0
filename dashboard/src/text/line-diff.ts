export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
  readonly oldLine?: number;
  readonly newLine?: number;
  /** The part that differs from the line it is compared with. */
  readonly changed?: readonly [from: number, to: number];
}

/** Beyond that the middle is shown as entirely removed and added. */
const MAX_CELLS = 4_000_000;

export function splitLines(text: string): string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

/** What turns one text into another, line by line. */
export function lineDiff(before: string, after: string, firstLine = 1): DiffLine[] {
  const old = splitLines(before);
  const next = splitLines(after);
  let head = 0;
  while (head < old.length && head < next.length && old[head] === next[head]) head++;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < next.length - head &&
    old[old.length - 1 - tail] === next[next.length - 1 - tail]
  ) {
    tail++;
  }
  const kinds: ('same' | 'added' | 'removed')[] = [
    ...Array<'same'>(head).fill('same'),
    ...middle(old.slice(head, old.length - tail), next.slice(head, next.length - tail)),
    ...Array<'same'>(tail).fill('same'),
  ];
  const lines: DiffLine[] = [];
  let oldAt = 0;
  let newAt = 0;
  for (const kind of kinds) {
    const text = (kind === 'added' ? next[newAt] : old[oldAt]) ?? '';
    lines.push({
      kind,
      text,
      ...(kind !== 'added' && { oldLine: firstLine + oldAt }),
      ...(kind !== 'removed' && { newLine: firstLine + newAt }),
    });
    if (kind !== 'added') oldAt++;
    if (kind !== 'removed') newAt++;
  }
  return markChanges(lines);
}

function middle(old: string[], next: string[]): ('same' | 'added' | 'removed')[] {
  if (old.length * next.length > MAX_CELLS) {
    return [...Array<'removed'>(old.length).fill('removed'), ...Array<'added'>(next.length).fill('added')];
  }
  const width = next.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = next.length - 1; column >= 0; column--) {
      common[row * width + column] =
        old[row] === next[column]
          ? (common[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(common[(row + 1) * width + column] ?? 0, common[row * width + column + 1] ?? 0);
    }
  }
  const kinds: ('same' | 'added' | 'removed')[] = [];
  let row = 0;
  let column = 0;
  while (row < old.length || column < next.length) {
    if (row < old.length && column < next.length && old[row] === next[column]) {
      kinds.push('same');
      row++;
      column++;
    } else if (
      column >= next.length ||
      (row < old.length && (common[(row + 1) * width + column] ?? 0) >= (common[row * width + column + 1] ?? 0))
    ) {
      kinds.push('removed');
      row++;
    } else {
      kinds.push('added');
      column++;
    }
  }
  return kinds;
}

/** Where as many lines were removed as were added in their place, marks which part of each differs. */
export function markChanges(lines: readonly DiffLine[]): DiffLine[] {
  const marked = [...lines];
  for (let at = 0; at < marked.length; at++) {
    if (marked[at]?.kind !== 'removed') continue;
    const removed = runLength(marked, at, 'removed');
    const added = runLength(marked, at + removed, 'added');
    if (removed === added) {
      for (let index = 0; index < removed; index++) {
        const left = marked[at + index];
        const right = marked[at + removed + index];
        if (!left || !right) continue;
        const range = differingParts(left.text, right.text);
        if (!range) continue;
        marked[at + index] = { ...left, changed: range.left };
        marked[at + removed + index] = { ...right, changed: range.right };
      }
    }
    at += removed + added - 1;
  }
  return marked;
}

function runLength(lines: readonly DiffLine[], from: number, kind: DiffLine['kind']): number {
  let end = from;
  while (lines[end]?.kind === kind) end++;
  return end - from;
}

type Range = readonly [number, number];

function differingParts(left: string, right: string): { left: Range; right: Range } | undefined {
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (
    tail < left.length - head &&
    tail < right.length - head &&
    left[left.length - 1 - tail] === right[right.length - 1 - tail]
  ) {
    tail++;
  }
  // Lines that have little in common are easier to read unmarked.
  if (head + tail < Math.max(left.length, right.length) / 3) return undefined;
  return { left: [head, left.length - tail], right: [head, right.length - tail] };
}
