import { signal, useSignal, useSignalEffect } from '@preact/signals';
import { useEffect, useId } from 'preact/hooks';
import { me } from '../api/sign-in.ts';
import { go, links } from '../model/router.ts';
import { findSessions, recent, TYPING_PAUSE_MS } from '../model/sessions.ts';
import { pushShown } from '../model/push.ts';
import { keysShown } from '../model/settings.ts';
import { signOut } from '../model/sign-in-flow.ts';
import { oneLine, projectOf, shortId } from '../text/words.ts';
import { Dialog } from './dialog.tsx';
import { Visible } from './plain-text.tsx';

export const paletteShown = signal(false);

interface Choice {
  readonly name: string;
  readonly note: string;
  readonly run: () => void;
}

const MAX_CHOICES = 12;

/** Everything that one can go to, by name. */
export function Palette() {
  const words = useSignal('');
  const at = useSignal(0);
  const id = useId();
  useEffect(() => void findSessions(''), []);
  useEffect(() => {
    const typed = words.value.trim();
    const timer = typed === '' ? undefined : setTimeout(() => void findSessions(typed), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [words.value]);
  const found = matching(words.value);
  const run = (choice: Choice) => {
    paletteShown.value = false;
    choice.run();
  };
  // Enter came before the hub had told which sessions there are.
  const enters = useSignal(false);
  useSignalEffect(() => {
    const [first] = enters.value ? matching(words.value) : [];
    if (first) run(first);
  });
  const chosen = Math.min(at.value, found.length - 1);
  return (
    <Dialog title="Go to" onClose={() => (paletteShown.value = false)}>
      <input
        type="text"
        role="combobox"
        aria-label="Page, session or command"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
        placeholder="Page, session or command"
        autoFocus
        value={words.value}
        onInput={({ currentTarget }) => {
          words.value = currentTarget.value;
          at.value = 0;
          enters.value = false;
        }}
        onKeyDown={(event) => {
          // What was typed last may not have been drawn yet.
          const now = matching(event.currentTarget.value);
          const place = Math.min(at.value, now.length - 1);
          if (event.key === 'ArrowDown') at.value = Math.min(now.length - 1, place + 1);
          else if (event.key === 'ArrowUp') at.value = Math.max(0, place - 1);
          else if (event.key !== 'Enter') return;
          else if (now[place]) run(now[place]);
          else enters.value = true;
          event.preventDefault();
        }}
      />
      <ul id={id} class="palette" role="listbox" aria-label="Choices">
        {found.map((choice, index) => (
          <li
            key={`${choice.name} ${index}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => run(choice)}
          >
            <Visible text={choice.name} />{' '}
            <span class="quiet">
              <Visible text={choice.note} />
            </span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function matching(typed: string): Choice[] {
  const wanted = typed.trim().toLowerCase().split(/\s+/);
  return choices()
    .filter(({ name, note }) => wanted.every((word) => `${name} ${note}`.toLowerCase().includes(word)))
    .slice(0, MAX_CHOICES);
}

function choices(): Choice[] {
  const may = me.value?.may;
  const page = (name: string, link: string): Choice => ({ name, note: 'page', run: () => go(link) });
  return [
    page('Inbox', links.inbox),
    page('Sessions', links.sessions),
    ...(may?.start === true ? [page('New session', links.new)] : []),
    ...recent.value.map((one) => ({
      name: oneLine(one.title ?? `Session ${shortId(one.sessionId)}`, 80),
      note: projectOf(one),
      run: () => go(links.session(one.sessionId)),
    })),
    ...(may?.readAll === true ? [page('Rules', links.rules)] : []),
    ...(may?.readAudit === true ? [page('Audit', links.audit)] : []),
    ...(may?.manageTokens === true ? [page('Tokens', links.tokens)] : []),
    page('Costs', links.costs),
    { name: 'Notifications', note: '', run: () => (pushShown.value = true) },
    { name: 'Keyboard', note: 'help', run: () => (keysShown.value = true) },
    { name: 'Sign out', note: '', run: () => void signOut() },
  ];
}
