import { signal } from '@preact/signals';

/** The displayed time, which needs no more precision than this. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) now.value = Date.now();
});
