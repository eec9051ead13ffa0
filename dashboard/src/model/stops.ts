/**
 * Where the keys for the next and the previous item lead. Lists register what they have, whether or not it is rendered:
 * only what is near the screen exists as elements.
 */
export interface Stops {
  has(key: string): boolean;
  /** The key of the next item after another, or the first; undefined at the end. */
  next(from: string | undefined, step: 1 | -1): string | undefined;
  focus(key: string): void;
}

const registered: Stops[] = [];

export function registerStops(stops: Stops): () => void {
  registered.push(stops);
  return () => void registered.splice(registered.indexOf(stops), 1);
}

/** From the item that has the focus, in its own list. Returns whether there was somewhere to go. */
export function moveFocus(step: 1 | -1): boolean {
  const from = document.activeElement?.closest<HTMLElement>('[data-key]')?.dataset['key'];
  const own = from === undefined ? undefined : registered.find((list) => list.has(from));
  for (const list of own ? [own] : registered.toReversed()) {
    const key = list.next(own && from, step);
    if (key === undefined) continue;
    list.focus(key);
    return true;
  }
  return false;
}
