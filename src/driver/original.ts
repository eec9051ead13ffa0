import type { EventBody, Original } from '../schema/events.ts';

/** Storing a shorter text twice costs less than a reference to it. */
const SHORTEST_SHARED = 120;

type Path = (string | number)[];
type Container = Record<string | number, unknown>;

/** For storage next to the event: long texts, most of a message, are then stored once, in the event. */
export function withoutTextsOf(body: EventBody, original: Original): Original {
  const { message } = original;
  const known = original.texts ? [] : longTextsIn(body);
  if (known.length === 0) return original;
  const texts: { from: Path; to: Path }[] = [];
  const path: Path = [];
  const strip = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const shared = value.length < SHORTEST_SHARED ? undefined : known.find(({ text }) => text === value);
      if (!shared) return value;
      texts.push({ from: shared.path, to: [...path] });
      return null;
    }
    if (typeof value !== 'object' || value === null) return value;
    let copy: Container | undefined;
    for (const [key, item] of entriesOf(value)) {
      path.push(key);
      const stripped = strip(item);
      path.pop();
      if (stripped === item) continue;
      copy ??= shallowCopy(value);
      copy[key] = stripped;
    }
    return copy ?? value;
  };
  const stripped = strip(message);
  return texts.length === 0 ? original : { message: stripped, texts };
}

/** The message as received from Claude Code. */
export function originalMessage({ message, texts = [] }: Original, body: EventBody): unknown {
  if (texts.length === 0) return message;
  const whole = structuredClone(message);
  for (const { from, to } of texts) {
    const parent = at(whole, to.slice(0, -1));
    const key = to.at(-1);
    if (key !== undefined && typeof parent === 'object' && parent !== null) (parent as Container)[key] = at(body, from);
  }
  return whole;
}

function at(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inside, key) => (typeof inside === 'object' && inside !== null ? (inside as Container)[key] : undefined),
    value,
  );
}

function longTextsIn(body: EventBody): { path: Path; text: string }[] {
  const found: { path: Path; text: string }[] = [];
  const path: Path = [];
  const visit = (value: unknown): void => {
    if (typeof value === 'string') {
      if (value.length >= SHORTEST_SHARED) found.push({ path: [...path], text: value });
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of entriesOf(value)) {
        path.push(key);
        visit(item);
        path.pop();
      }
    }
  };
  visit(body);
  return found;
}

function entriesOf(value: object): Iterable<[string | number, unknown]> {
  return Array.isArray(value) ? value.entries() : Object.entries(value);
}

function shallowCopy(value: object): Container {
  return (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Container;
}
