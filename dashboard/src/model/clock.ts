import { signal } from '@preact/signals';

/** The displayed time, which needs no more precision than this. */
export const now = signal(Date.now());
/** For what is counted in seconds. */
export const seconds = signal(Date.now());

function tick(): void {
  if (document.hidden) return;
  seconds.value = Date.now();
  if (seconds.value - now.value >= 10_000) now.value = seconds.value;
}

setInterval(tick, 1_000);
document.addEventListener('visibilitychange', tick);
