import { signal } from '@preact/signals';

/** The time as shown, which needs no more than this. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now();
});
