import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/**
 * The browser's own dialog: it keeps the focus inside, closes on Escape and gives the focus back. One that is removed
 * would not give it back, so it is closed first.
 */
export function Dialog({ title, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // The clean-up of other effects comes when the element is gone.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={heading}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === element.current) element.current?.close();
      }}
    >
      <div class="dialog-body">
        <h2 id={heading}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface ButtonsProps {
  /** The way out, for somebody who has read the question. */
  leave?: string;
  /** It asks before something that cannot be undone: the focus begins on the way out. */
  isQuestion?: boolean;
  children?: ComponentChildren;
}

/** What can be done in a dialog, and the way out of it. */
export function DialogButtons({ leave = 'Close', isQuestion = false, children }: ButtonsProps) {
  return (
    <form method="dialog" class="buttons">
      {children}
      <button type="submit" class="button" autoFocus={isQuestion}>
        {leave}
      </button>
    </form>
  );
}
