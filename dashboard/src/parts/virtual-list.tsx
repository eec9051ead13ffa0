import type { ComponentChild, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import { registerStops } from '../model/stops.ts';
import { historyEntry } from '../model/router.ts';

interface Props<Item> {
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
  readonly render: (item: Item) => ComponentChild;
  /** Until an item has been measured. */
  readonly estimate: number;
  readonly scroller: RefObject<HTMLElement | null>;
  readonly label: string;
  /** Stays at the end while the end is visible. */
  readonly followEnd?: boolean;
  readonly onNearStart?: () => void;
  readonly onNearEnd?: () => void;
  readonly onScroll?: (place: ScrollPlace) => void;
  readonly class?: string;
  /** Filled in with a way to bring an item onto the screen. */
  readonly control?: RefObject<ListControl | null>;
  /** Whether the keys for the next and the previous item stop at it. */
  readonly isStop?: (item: Item) => boolean;
  /** An item that is marked. */
  readonly marked?: string | undefined;
}

export interface ScrollPlace {
  readonly atEnd: boolean;
  readonly top: number;
}

export interface ListControl {
  show(key: string): void;
}

/** A row, and where on the screen it begins. */
interface Anchor {
  readonly key: string;
  readonly top: number;
}

/** Where lists were left, by entry of the history. */
const places = new Map<string, { anchor: Anchor; heights: Map<string, number> }>();
const MAX_PLACES = 100;

const OVERSCAN_PX = 600;
const NEAR_PX = 800;
const AT_END_PX = 40;
/** How far below the edge an item is shown that was asked for. */
const SHOWN_PX = 12;

/**
 * A long list of which only the part near the screen exists. Heights are measured, and neither changes above the first
 * visible item nor a header that folds away move it on the screen.
 */
export function VirtualList<Item>(props: Props<Item>) {
  const { items, keyOf, render, estimate, scroller, label, followEnd = false } = props;
  const outer = useRef<HTMLDivElement>(null);
  const place = useRef(`${historyEntry()} ${label}`).current;
  const kept = useRef(places.get(place)).current;
  const heights = useRef(kept?.heights ?? new Map<string, number>());
  const [, redraw] = useReducer((count: number, _: undefined) => count + 1, 0);
  const follows = useRef(followEnd && !kept);
  /** The first visible item. */
  const anchor = useRef<Anchor | undefined>(kept?.anchor);
  /** How far it was scrolled when its rows were last in place. */
  const scrolled = useRef<number | undefined>(undefined);
  /** The item that gets the focus as soon as it is rendered. */
  const wanted = useRef<string | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;

  const offsets = new Float64Array(items.length + 1);
  for (const [index, item] of items.entries()) {
    offsets[index + 1] = (offsets[index] ?? 0) + (heights.current.get(keyOf(item)) ?? estimate);
  }
  const total = offsets[items.length] ?? 0;
  const { top, height } = windowOf(scroller.current, outer.current, total, follows.current);
  const first = Math.max(0, indexAt(offsets, top - OVERSCAN_PX));
  const last = Math.min(items.length, indexAt(offsets, top + height + OVERSCAN_PX) + 1);

  // Before the effect that returns to a kept place: its scrolling must be heard.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    let frame = 0;
    const onScroll = () => {
      const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < AT_END_PX;
      follows.current = (latest.current.followEnd ?? false) && atEnd;
      latest.current.onScroll?.({ atEnd, top: element.scrollTop });
      remember();
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => redraw(undefined));
    };
    const remember = () => {
      // Where the list itself has scrolled to, the rows may still be missing: its anchor holds.
      if (element.scrollTop !== scrolled.current) anchor.current = firstVisible(outer.current, element);
      scrolled.current = element.scrollTop;
    };
    const resized = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
      redraw(undefined);
    });
    // A row that is unfolded is known to be higher before anything scrolls over it.
    const grown = new ResizeObserver(() => {
      if (measure(outer.current, heights.current)) redraw(undefined);
    });
    element.addEventListener('scroll', onScroll, { passive: true });
    resized.observe(element);
    if (outer.current) grown.observe(outer.current);
    redraw(undefined);
    return () => {
      element.removeEventListener('scroll', onScroll);
      resized.disconnect();
      grown.disconnect();
      cancelAnimationFrame(frame);
      places.delete(place);
      if (anchor.current && !follows.current) places.set(place, { anchor: anchor.current, heights: heights.current });
      if (places.size > MAX_PLACES) places.delete(places.keys().next().value ?? '');
    };
  }, []);

  const focusRow = (key: string): boolean => {
    const target = rowOf(outer.current, key)?.querySelector<HTMLElement>('[data-request], a, button');
    wanted.current = undefined;
    target?.focus({ preventScroll: true });
    target?.scrollIntoView({ block: 'nearest' });
    return target !== undefined && target !== null;
  };
  const show = (key: string): void => {
    follows.current = false;
    anchor.current = { key, top: (scroller.current?.getBoundingClientRect().top ?? 0) + SHOWN_PX };
    scrolled.current = scroller.current?.scrollTop;
    redraw(undefined);
  };
  if (props.control) props.control.current = { show };

  useEffect(() => {
    const stops = () => latest.current.items.filter((item) => latest.current.isStop?.(item) === true);
    if (!props.isStop) return undefined;
    return registerStops({
      has: (key) => latest.current.items.some((item) => latest.current.keyOf(item) === key),
      next: (from, step) => {
        const all = latest.current.items.map((item) => latest.current.keyOf(item));
        const keys = stops().map((item) => latest.current.keyOf(item));
        const at = from === undefined ? -1 : all.indexOf(from);
        if (at < 0) return step > 0 ? keys[0] : keys.at(-1);
        return step > 0 ? keys.find((key) => all.indexOf(key) > at) : keys.findLast((key) => all.indexOf(key) < at);
      },
      focus: (key) => {
        // At once where it can be: the next key may already be on its way.
        if (focusRow(key)) return;
        wanted.current = key;
        show(key);
      },
    });
  }, []);

  useLayoutEffect(() => {
    const element = scroller.current;
    const list = outer.current;
    if (!element || !list) return;
    let changed = measure(list, heights.current);
    // It was scrolled, and the event has yet to come: that must not be taken back.
    const since = element.scrollTop - (scrolled.current ?? element.scrollTop);
    if (anchor.current && since !== 0) anchor.current = { ...anchor.current, top: anchor.current.top - since };
    if (follows.current) {
      element.scrollTop = element.scrollHeight;
      anchor.current = undefined;
    } else if (anchor.current) {
      const index = items.findIndex((item) => keyOf(item) === anchor.current?.key);
      const row = index < 0 ? null : list.querySelector<HTMLElement>(`:scope > [data-index="${index}"]`);
      const before = offsets[index];
      if (row || before !== undefined) {
        const at = row ? row.getBoundingClientRect().top : list.getBoundingClientRect().top + (before ?? 0);
        const drift = at - anchor.current.top;
        const from = element.scrollTop;
        if (Math.abs(drift) >= 1) element.scrollTop += drift;
        // At either end it cannot be where it was meant to be.
        if (row) anchor.current = { ...anchor.current, top: row.getBoundingClientRect().top };
        else changed ||= element.scrollTop !== from;
      }
    } else anchor.current = firstVisible(list, element);
    scrolled.current = element.scrollTop;
    if (wanted.current !== undefined && rowOf(list, wanted.current)) focusRow(wanted.current);
    if (changed) redraw(undefined);
    if (top < NEAR_PX) latest.current.onNearStart?.();
    if (total - top - height < NEAR_PX) latest.current.onNearEnd?.();
  });

  return (
    <div class={`virtual ${props.class ?? ''}`} role="list" aria-label={label} ref={outer}>
      <div style={{ height: `${offsets[first] ?? 0}px` }} aria-hidden="true" />
      {items.slice(first, last).map((item, index) => {
        const key = keyOf(item);
        return (
          <div
            key={key}
            data-key={key}
            data-index={first + index}
            class={key === props.marked ? 'marked' : undefined}
            role="listitem"
            aria-posinset={first + index + 1}
            aria-setsize={items.length}
          >
            {render(item)}
          </div>
        );
      })}
      <div style={{ height: `${Math.max(0, total - (offsets[last] ?? total))}px` }} aria-hidden="true" />
    </div>
  );
}

function windowOf(scroller: HTMLElement | null, list: HTMLElement | null, total: number, atEnd: boolean) {
  const height = scroller?.clientHeight ?? innerHeight;
  if (!scroller || !list) return { top: atEnd ? Math.max(0, total - height) : 0, height };
  if (atEnd) return { top: Math.max(0, total - height), height };
  return { top: scroller.getBoundingClientRect().top - list.getBoundingClientRect().top, height };
}

function rowsOf(list: HTMLElement | null): Iterable<HTMLElement> {
  return list?.querySelectorAll<HTMLElement>(':scope > [data-key]') ?? [];
}

function rowOf(list: HTMLElement | null, key: string): HTMLElement | null | undefined {
  return list?.querySelector<HTMLElement>(`:scope > [data-key="${CSS.escape(key)}"]`);
}

/** Whether a row is higher or lower than it was known to be. */
function measure(list: HTMLElement | null, heights: Map<string, number>): boolean {
  let changed = false;
  for (const row of rowsOf(list)) {
    const key = row.dataset['key'] ?? '';
    if (heights.get(key) === row.offsetHeight) continue;
    heights.set(key, row.offsetHeight);
    changed = true;
  }
  return changed;
}

function firstVisible(list: HTMLElement | null, scroller: HTMLElement): Anchor | undefined {
  const screen = scroller.getBoundingClientRect();
  for (const row of rowsOf(list)) {
    const box = row.getBoundingClientRect();
    if (box.top >= screen.bottom) return undefined;
    if (box.bottom > screen.top) return { key: row.dataset['key'] ?? '', top: box.top };
  }
  return undefined;
}

/** The item that a position falls into. */
function indexAt(offsets: Float64Array, position: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((offsets[middle] ?? 0) <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}
