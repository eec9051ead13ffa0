import { computed, signal, type ReadonlySignal } from '@preact/signals';

/**
 * What has been seen of the input of a request. Nothing can be allowed before all of it has been on the screen or was
 * unfolded. Kept beside the cards, which exist only near the screen.
 */
export class Reading {
  readonly #parts = signal<ReadonlyMap<string, Part>>(new Map());
  readonly left: ReadonlySignal<Left> = computed(() => {
    const parts = [...this.#parts.value.values()].map(({ left }) => left.value);
    if (parts.length === 0) return 'unseen';
    return ORDER.find((left) => parts.includes(left)) ?? 'nothing';
  });

  part(id: string): Part {
    const known = this.#parts.peek().get(id);
    if (known) return known;
    const part = new Part();
    this.#parts.value = new Map([...this.#parts.peek(), [id, part]]);
    return part;
  }

  /** Brings what has not been seen yet onto the screen. */
  showUnseen(): void {
    for (const part of this.#parts.peek().values()) {
      part.measure();
      if (part.left.peek() === 'nothing') continue;
      part.scrollIntoView();
      return;
    }
  }

  measure(): void {
    for (const part of this.#parts.peek().values()) part.measure();
  }
}

/** What must happen before a part has been seen: it is folded, it is taller than the screen, or it is just elsewhere. */
export type Left = 'folded' | 'taller' | 'unseen' | 'nothing';
const ORDER: readonly Left[] = ['folded', 'taller', 'unseen'];

/** One piece of the input, such as a field. */
export class Part {
  readonly #left = signal<Left>('unseen');
  readonly #unfolded = signal(false);
  readonly #folds = new Set<object>();
  #element: HTMLElement | undefined;
  #scrollers: readonly HTMLElement[] = [];
  #seen: Coverage = EMPTY;

  get left(): ReadonlySignal<Left> {
    return this.#left;
  }

  get unfolded(): ReadonlySignal<boolean> {
    return this.#unfolded;
  }

  unfold(): void {
    this.#unfolded.value = true;
    this.#left.value = 'nothing';
  }

  /** A fold inside the part says whether it currently hides anything. */
  setFold(fold: object, hides: boolean): void {
    if (!hides) {
      this.#folds.delete(fold);
      return;
    }
    this.#folds.add(fold);
    if (this.#left.peek() !== 'nothing') this.#left.value = 'folded';
  }

  /** Measures the part whenever it may have moved; returns how to stop that. */
  watch(element: HTMLElement): () => void {
    this.#element = element;
    this.#scrollers = scrollersOf(element);
    const resized = new ResizeObserver(() => this.measure());
    resized.observe(element);
    // What is above it may become shorter: then it comes onto the screen without being scrolled there.
    const appears = new IntersectionObserver(() => this.measure(), { threshold: [0, 1] });
    appears.observe(element);
    watched.add(this);
    listen();
    return () => {
      resized.disconnect();
      appears.disconnect();
      watched.delete(this);
      this.#element = undefined;
    };
  }

  measure(): void {
    // Once it is out of the document it has no size, and observers still report that.
    if (!this.#element?.isConnected || this.#left.peek() === 'nothing' || document.hidden) return;
    if (this.#folds.size > 0) {
      this.#left.value = 'folded';
      return;
    }
    const box = this.#element.getBoundingClientRect();
    let [top, bottom] = [0, innerHeight];
    for (const scroller of this.#scrollers) {
      const frame = scroller.getBoundingClientRect();
      [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
    }
    this.#seen = cover(this.#seen, box.height, top - box.top, bottom - box.top);
    this.#left.value = isCovered(this.#seen) ? 'nothing' : box.height > bottom - top ? 'taller' : 'unseen';
  }

  /** Of one that is taller than the screen, the part that comes next. */
  scrollIntoView(): void {
    const scroller = this.#scrollers.find((one) => one.scrollHeight > one.clientHeight);
    if (this.#element && scroller && this.#left.peek() === 'taller') {
      const [first] = this.#seen.stretches;
      const seen = first && first[0] <= TOLERANCE ? first[1] : 0;
      const top = this.#element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
      scroller.scrollBy({ top: top + seen - TOLERANCE });
    } else this.#element?.scrollIntoView({ block: 'center' });
    this.measure();
  }
}

/** Which stretches of a part of this height have been on the screen, in pixels from its top, in order. */
export interface Coverage {
  readonly height: number;
  readonly stretches: readonly (readonly [from: number, to: number])[];
}

export const EMPTY: Coverage = { height: 0, stretches: [] };
/** Layout positions are fractions of pixels. */
const TOLERANCE = 2;

/** Adds what is visible now. A part that has changed its height has to be seen anew. */
export function cover(seen: Coverage, height: number, from: number, to: number): Coverage {
  const earlier = Math.abs(seen.height - height) < 1 ? seen.stretches : [];
  const [first, last] = [Math.max(0, from), Math.min(height, to)];
  if (last - first <= 0 && height > 0) return { height, stretches: earlier };
  const stretches: [number, number][] = [];
  for (const [start, end] of [...earlier, [first, last] as const].sort(([a], [b]) => a - b)) {
    const before = stretches.at(-1);
    if (before && start <= before[1] + TOLERANCE) before[1] = Math.max(before[1], end);
    else stretches.push([start, end]);
  }
  return { height, stretches };
}

export function isCovered({ height, stretches }: Coverage): boolean {
  const [first, ...others] = stretches;
  return first !== undefined && others.length === 0 && first[0] <= TOLERANCE && first[1] >= height - TOLERANCE;
}

function scrollersOf(element: HTMLElement): HTMLElement[] {
  const scrollers: HTMLElement[] = [];
  for (let at = element.parentElement; at; at = at.parentElement) {
    if (getComputedStyle(at).overflowY !== 'visible') scrollers.push(at);
  }
  return scrollers;
}

const watched = new Set<Part>();
let isListening = false;

/** Scrolling is measured once per frame, so that what was skipped between two frames does not count as seen. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  let frame = 0;
  const later = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      for (const part of watched) part.measure();
    });
  };
  document.addEventListener('scroll', later, { capture: true, passive: true });
  document.addEventListener('visibilitychange', later);
  addEventListener('resize', later);
}

const readings = new Map<string, Reading>();

export function readingOf(requestId: string): Reading {
  let reading = readings.get(requestId);
  if (!reading) {
    reading = new Reading();
    readings.set(requestId, reading);
  }
  return reading;
}

/** What one person has read, the next has not. */
export function forgetReadings(): void {
  readings.clear();
}
