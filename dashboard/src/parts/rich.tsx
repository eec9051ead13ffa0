import { lazy } from './lazy.tsx';
import type { EditDiffProps, UnifiedDiffProps } from './diff-view.tsx';
import { Code } from './plain-text.tsx';

/** Parts that not every page needs. Until they are loaded, and if they never are, the plain text is shown. */

export const Markdown = lazy<{ text: string }>(
  async () => (await import('./markdown-view.tsx')).MarkdownView,
  ({ text }) => <Code text={text} label="Text" />,
);

export const EditDiff = lazy<EditDiffProps>(
  async () => (await import('./diff-view.tsx')).EditDiff,
  ({ before, after, label }) => (
    <>
      <Code text={before} label={`${label}, before`} />
      <Code text={after} label={`${label}, after`} />
    </>
  ),
);

export const UnifiedDiff = lazy<UnifiedDiffProps>(
  async () => (await import('./diff-view.tsx')).UnifiedDiff,
  ({ text }) => <Code text={text} label="Changes" />,
);

export const PhoneDialog = lazy<{ onClose: () => void }>(
  async () => (await import('./phone-dialog.tsx')).PhoneDialog,
  () => null,
);

export function loadRichParts(): void {
  for (const part of [Markdown, EditDiff, UnifiedDiff]) part.load();
}
