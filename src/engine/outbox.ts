/** Messages handed to Claude Code whose end it has not reported: none of them may vanish without a word. */
export class Outbox {
  readonly #messages = new Map<string, { text: string; stage: 'sent' | 'queued' | 'started' }>();

  add(id: string, text: string): void {
    this.#messages.set(id, { text, stage: 'sent' });
  }

  advance(id: string, stage: 'queued' | 'started' | 'ended'): void {
    const message = this.#messages.get(id);
    if (!message) return;
    if (stage === 'ended') this.#messages.delete(id);
    else message.stage = stage;
  }

  /** Answered by a result. A Claude Code that does not say which ones has answered all. */
  answered(ids: readonly string[] | undefined): void {
    if (ids === undefined) this.#messages.clear();
    else for (const id of ids) this.#messages.delete(id);
  }

  /** Something is under way that Claude Code may not have read yet, so its word of being idle is older than that. */
  get unread(): boolean {
    return [...this.#messages.values()].some(({ stage }) => stage === 'sent');
  }

  /** Takes out everything if Claude Code has not touched any of it; otherwise nothing. */
  takeUntouched(): { id: string; text: string }[] {
    const messages = [...this.#messages].map(([id, { text, stage }]) => ({ id, text, stage }));
    if (messages.some(({ stage }) => stage !== 'sent')) return [];
    this.#messages.clear();
    return messages;
  }

  /** Something that Claude Code has not begun a turn with: it goes on with that when the present turn ends. */
  get waiting(): boolean {
    return [...this.#messages.values()].some(({ stage }) => stage !== 'started');
  }

  /** Takes out all that no turn has begun with. */
  takeUndelivered(): string[] {
    const texts = [...this.#messages.values()].filter(({ stage }) => stage !== 'started').map(({ text }) => text);
    this.#messages.clear();
    return texts;
  }
}
