import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface Props {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** The browser's own dialog: it keeps the focus inside, closes on Escape and gives the focus back. */
export function Dialog({ title, onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    element.current?.showModal();
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
