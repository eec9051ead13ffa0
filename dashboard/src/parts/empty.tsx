import type { ComponentChildren } from 'preact';

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failed({ what, why, onRetry }: { what: string; why: string; onRetry: () => void }) {
  return (
    <div class="empty" role="alert">
      <h2>{what}</h2>
      <p>{why}</p>
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

/** Reserves the space of what is to come. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" aria-busy="true">
      {what}
    </p>
  );
}
