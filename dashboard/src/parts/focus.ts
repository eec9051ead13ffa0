/** For `ref`: writing continues in a field that has just appeared. Outside of dialogs `autoFocus` does nothing then. */
export function focusIt(element: HTMLElement | null): void {
  element?.focus();
}

/** Where the focus goes when the element that has it goes away: single keys work there, and Tab goes on from there. */
export function focusMain(): void {
  document.querySelector('main')?.focus({ preventScroll: true });
}

let isPointed = false;
addEventListener('pointerdown', () => (isPointed = true), { capture: true });
addEventListener('keydown', () => (isPointed = false), { capture: true });

/** Whoever points at the page goes on where they like: nothing is scrolled to, and nothing comes under the finger. */
export function isPointing(): boolean {
  return isPointed;
}
