import { describe, expect, it } from 'vitest';
import { Outbox } from './outbox.ts';

function outboxWith(...texts: string[]): Outbox {
  const outbox = new Outbox();
  for (const text of texts) outbox.add({ id: text, text });
  return outbox;
}

describe('outbox', () => {
  it('knows what is under way until its end is reported', () => {
    const outbox = outboxWith('a');
    expect([outbox.unread, outbox.waiting]).toEqual([true, true]);
    outbox.advance('a', 'queued');
    expect([outbox.unread, outbox.waiting]).toEqual([false, true]);
    outbox.advance('a', 'started');
    expect([outbox.unread, outbox.waiting]).toEqual([false, false]);
    expect(outbox.takeUndelivered()).toEqual([]);
  });

  it('takes all for answered by a Claude Code that does not say which', () => {
    const outbox = outboxWith('a', 'b');
    outbox.answered(['a']);
    expect(outbox.takeUndelivered()).toEqual(['b']);
    outbox.add({ id: 'c', text: 'c' });
    outbox.answered(undefined);
    expect(outbox.takeUndelivered()).toEqual([]);
  });

  it('hands out again only what was not touched at all', () => {
    const outbox = outboxWith('a', 'b');
    expect(outbox.untouched.map(({ text }) => text)).toEqual(['a', 'b']);
    outbox.advance('a', 'queued');
    expect(outbox.untouched).toEqual([]);
  });

  it('resends what has no answer, but not what the caller was told to resend', () => {
    const outbox = outboxWith('same', 'other', 'same');
    outbox.advance('other', 'started');
    expect(outbox.unanswered).toBe('same\n\nother\n\nsame');
    outbox.takeBack('same');
    expect(outbox.unanswered).toBe('same\n\nother');
    expect(outboxWith('a', 'b').takeUndelivered()).toEqual(['a', 'b']);
    outbox.advance('other', 'ended');
    expect(outbox.unanswered).toContain('other');
    outbox.answered([]);
    expect(outbox.unanswered).toBe('');
  });
});
