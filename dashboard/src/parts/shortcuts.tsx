import { useEffect } from 'preact/hooks';
import { me } from '../api/sign-in.ts';
import { go, links } from '../model/router.ts';
import { keysShown, setShortcuts, shortcutsOn } from '../model/settings.ts';
import { Dialog } from './dialog.tsx';

const KEYS: readonly (readonly [string, string])[] = [
  ['j / k', 'next or previous request'],
  ['a', 'allow the focused request'],
  ['Shift + A', 'always allow it'],
  ['d', 'deny it'],
  ['m', 'write a message to Claude'],
  ['e', 'edit its input'],
  ['g i / g s', 'go to the inbox, to the sessions'],
  ['n', 'new session'],
  ['/', 'search, or write a message'],
  ['Ctrl + Enter', 'send'],
  ['?', 'this list'],
];

const TYPING = 'input, textarea, select, [contenteditable]';

export function Shortcuts() {
  useEffect(() => {
    let afterG = false;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.target instanceof Element && event.target.closest(TYPING)) return;
      if (document.querySelector('dialog[open]')) return;
      if (event.key === '?') {
        keysShown.value = true;
        return;
      }
      if (!shortcutsOn.value) return;
      const wasG = afterG;
      afterG = event.key === 'g';
      if (wasG && event.key === 'i') go(links.inbox);
      else if (wasG && event.key === 's') go(links.sessions);
      else if (event.key === 'j' || event.key === 'k') moveFocus(event.key === 'j' ? 1 : -1);
      else if (event.key === 'n' && me.value?.may.start === true) go(links.new);
      else if (event.key === '/') {
        const field = document.querySelector<HTMLElement>('[data-slash]');
        if (!field) return;
        event.preventDefault();
        field.focus();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (!keysShown.value) return null;
  return (
    <Dialog title="Keyboard" onClose={() => (keysShown.value = false)}>
      <dl class="keys">
        {KEYS.map(([keys, what]) => (
          <div>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={shortcutsOn.value}
          onChange={({ currentTarget }) => setShortcuts(currentTarget.checked)}
        />{' '}
        <span>
          Single keys <span class="quiet">Turn them off if they get in your way</span>
        </span>
      </label>
      <form method="dialog" class="buttons">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </Dialog>
  );
}

function moveFocus(step: 1 | -1): void {
  const cards = [...document.querySelectorAll<HTMLElement>('[data-request]:not(.settled)')];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  const next = cards[at < 0 ? (step > 0 ? 0 : cards.length - 1) : Math.min(cards.length - 1, Math.max(0, at + step))];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: 'nearest' });
}
