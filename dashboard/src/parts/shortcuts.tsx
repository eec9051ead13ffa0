import { useEffect } from 'preact/hooks';
import { me } from '../api/sign-in.ts';
import { go, links } from '../model/router.ts';
import { keysShown, setShortcuts, shortcutsOn } from '../model/settings.ts';
import { moveFocus } from '../model/stops.ts';
import { Dialog, DialogButtons } from './dialog.tsx';
import { Palette, paletteShown } from './palette.tsx';

const KEYS: readonly (readonly [string, string])[] = [
  ['Ctrl + K', 'go to a page or a session'],
  ['j / k', 'next or previous request or session'],
  ['a', 'allow the focused request'],
  ['Shift + A', 'always allow it'],
  ['s', 'allow edits in this session'],
  ['d', 'deny it'],
  ['m', 'write a message to Claude'],
  ['e', 'edit its input'],
  ['g i / g s', 'go to the inbox, to the sessions'],
  ['n', 'new session'],
  ['/', 'search, or write a message'],
  ['Home / End', 'start or end of a session'],
  ['Ctrl + Enter', 'send what is being written'],
  ['Esc', 'leave a field, go back from editing'],
  ['?', 'this list'],
];

const TYPING = 'input, textarea, select, [contenteditable]';

/** Keys belong to the field that is being written in. */
export function isTyping({ target }: KeyboardEvent): boolean {
  return target instanceof Element && target.closest(TYPING) !== null;
}

export function Shortcuts() {
  useEffect(() => {
    let afterG = false;
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k' && !document.querySelector('dialog[open]')) {
        event.preventDefault();
        paletteShown.value = true;
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.key === 'Escape' && isTyping(event) && !document.querySelector('dialog[open]')) {
        // Back to what the field belongs to, where single keys work again.
        const field = event.target as HTMLElement;
        (field.closest<HTMLElement>('[data-request]') ?? document.querySelector<HTMLElement>('main'))?.focus();
        return;
      }
      if (isTyping(event)) return;
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
  if (paletteShown.value) return <Palette />;
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
      <DialogButtons />
    </Dialog>
  );
}
