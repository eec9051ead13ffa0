/**
 * Where the keys for the next and the previous item lead. Lists register what they have, whether or not it is rendered:
 * only what is near the screen exists as elements.
 */
export interface Stops {
  /** The key of the next item after another, or the first; undefined at the end. */
  next(from: string | undefined, step: 1 | -1): string | undefined;
  focus(key: string): void;
}

const registered: Stops[] = [];

export function registerStops(stops: Stops): () => void {
  registered.push(stops);
  return () => void registered.splice(registered.indexOf(stops), 1);
}

/** From the item that has the focus, in its own list. */
export function moveFocus(step: 1 | -1): void {
  const from = document.activeElement?.closest<HTMLElement>('[data-key]')?.dataset['key'];
  const lists = registered.toReversed();
  const list = lists.find((one) => from !== undefined && one.next(from, step) !== undefined) ?? lists[0];
  const key = list?.next(from, step);
  if (key !== undefined) list?.focus(key);
}
