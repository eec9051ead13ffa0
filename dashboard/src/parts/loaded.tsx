import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { wordsOf } from '../api/client.ts';
import { Failed, Loading } from './empty.tsx';

export type Loaded<Value> =
  | { readonly state: 'loading' }
  | { readonly state: 'loaded'; readonly value: Value }
  | { readonly state: 'failed'; readonly why: string };

/** What a page shows, read once when it is opened and again on demand. */
export function useLoaded<Value>(read: () => Promise<Value>): { loaded: Loaded<Value>; load: () => void } {
  const loaded = useSignal<Loaded<Value>>({ state: 'loading' });
  const load = () => {
    read().then(
      (value) => (loaded.value = { state: 'loaded', value }),
      (error: unknown) => (loaded.value = { state: 'failed', why: wordsOf(error) }),
    );
  };
  useEffect(load, []);
  return { loaded: loaded.value, load };
}

interface Props<Value> {
  loaded: Loaded<Value>;
  /** Such as "rules". */
  what: string;
  load: () => void;
  children: (value: Value) => ComponentChildren;
}

export function WhenLoaded<Value>({ loaded, what, load, children }: Props<Value>) {
  if (loaded.state === 'loading') return <Loading what={`Loading ${what}…`} />;
  if (loaded.state === 'failed')
    return <Failed what={`The ${what} could not be loaded`} why={loaded.why} onRetry={load} />;
  return <>{children(loaded.value)}</>;
}
