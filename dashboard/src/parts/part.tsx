import { useSignal } from '@preact/signals';
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Part, Reading } from '../model/reading.ts';

/** Set inside a request that can be allowed: its parts report what has been on the screen. */
export const ReadingContext = createContext<Reading | undefined>(undefined);
/** The part that a fold belongs to; `whole` where the part folds as a whole and nothing inside it does. */
const PartContext = createContext<Part | 'whole' | undefined>(undefined);

/** A piece of an input. In a request, it must have been seen before the request can be allowed. */
export function InputPart({ id, children }: { id: string; children: ComponentChildren }) {
  const reading = useContext(ReadingContext);
  return reading ? (
    <WatchedPart reading={reading} id={id}>
      {children}
    </WatchedPart>
  ) : (
    <>{children}</>
  );
}

function WatchedPart({ reading, id, children }: { reading: Reading; id: string; children: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  const part = useMemo(() => reading.part(id), [reading, id]);
  // After the folds inside have said what they hide.
  useEffect(() => {
    if (!element.current) return undefined;
    const stop = part.watch(element.current);
    part.measure();
    return stop;
  }, [part]);
  return (
    <PartContext.Provider value={part}>
      <div class="part" ref={element}>
        {children}
      </div>
    </PartContext.Provider>
  );
}

export function Unfolded({ children }: { children: ComponentChildren }) {
  const part = useContext(PartContext);
  return part ? <PartContext.Provider value="whole">{children}</PartContext.Provider> : <>{children}</>;
}

export function useIsInput(): boolean {
  return useContext(PartContext) !== undefined;
}

export interface Limits {
  readonly lines: number;
  readonly chars: number;
}

/** A request shows its input without inner scrolling, so it folds earlier. */
const INPUT_LIMITS: Limits = { lines: 60, chars: 6_000 };

/** Unfolds a text. The button goes away; the focus goes to the request that the text belongs to, or to the text. */
export function ShowAll({ unfold, children }: { unfold: () => void; children: ComponentChildren }) {
  return (
    <button
      type="button"
      class="button small"
      data-control="show-all"
      onClick={({ currentTarget }) => {
        const text = currentTarget.closest('.cut')?.querySelector<HTMLElement>('[tabindex]');
        (currentTarget.closest<HTMLElement>('[data-request]') ?? text)?.focus({ preventScroll: true });
        unfold();
      }}
    >
      Show all {children}
    </button>
  );
}

/** How much of a long text is shown: everything once it is unfolded. */
export function useFold(lines: number, chars: number, limits: Limits): { shown: Limits | 'all'; unfold: () => void } {
  const part = useContext(PartContext);
  const own = useSignal(false);
  const fold = useRef({}).current;
  const { lines: maxLines, chars: maxChars } = part ? INPUT_LIMITS : limits;
  const unfolded = part === 'whole' || (part ? part.unfolded.value : own.value);
  const hides = !unfolded && (lines > maxLines || chars > maxChars);
  useLayoutEffect(() => {
    if (part === undefined || part === 'whole') return undefined;
    part.setFold(fold, hides);
    return () => part.setFold(fold, false);
  }, [part, hides]);
  return {
    shown: hides ? { lines: maxLines, chars: maxChars } : 'all',
    unfold: () => {
      if (part === undefined || part === 'whole') own.value = true;
      else part.unfold();
    },
  };
}
