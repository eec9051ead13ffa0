import { signal } from '@preact/signals';

const SHORTCUTS = 'claude-code-hub.shortcuts';

function read(): boolean {
  try {
    return localStorage.getItem(SHORTCUTS) !== 'off';
  } catch {
    return true;
  }
}

/** Single keys can be turned off by those they surprise. */
export const shortcutsOn = signal(read());

/** Whether the list of keys is on the screen. */
export const keysShown = signal(false);

export function setShortcuts(on: boolean): void {
  shortcutsOn.value = on;
  try {
    localStorage.setItem(SHORTCUTS, on ? 'on' : 'off');
  } catch {
    return;
  }
}
