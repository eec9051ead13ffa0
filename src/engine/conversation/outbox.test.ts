import { describe, expect, it } from 'vitest';
import { resultEvent } from '../../../test/harness/agent-messages.ts';
import type { SessionEvent } from '../../schema/events.ts';
import { Outbox } from './outbox.ts';

function outboxWith(...texts: string[]): Outbox {
  const outbox = new Outbox();
  for (const text of texts) outbox.add({ id: text, text });
  return outbox;
}

describe('outbox', () => {
  it('tracks a message until the process starts on it', () => {
    const outbox = outboxWith('a');
    expect([outbox.unread, outbox.waiting]).toEqual([true, true]);
    outbox.advance('a', 'queued');
    expect([outbox.unread, outbox.waiting]).toEqual([false, true]);
    outbox.advance('a', 'started');
    expect([outbox.unread, outbox.waiting]).toEqual([false, false]);
    expect(outbox.takeUndelivered()).toEqual([]);
  });

  it('counts every message as answered if Claude Code does not name them', () => {
    const outbox = outboxWith('a', 'b');
    outbox.answered(['a']);
    expect(outbox.takeUndelivered()).toEqual(['b']);
    outbox.add({ id: 'c', text: 'c' });
    outbox.answered(undefined);
    expect(outbox.takeUndelivered()).toEqual([]);
  });

  it('lets go of what is queued behind a turn, and of nothing else', () => {
    const outbox = new Outbox();
    outbox.add({ id: 'first', text: 'first', begins: true });
    outbox.add({ id: 'second', text: 'second' });
    outbox.add({ id: 'note', text: 'note', preamble: 4 });
    expect(['first', 'second', 'note', 'never'].map((id) => outbox.isQueued(id))).toEqual([false, true, false, false]);
    outbox.advance('second', 'queued');
    expect(outbox.isQueued('second')).toBe(true);
    outbox.advance('second', 'withdrawn');
    expect(outbox.isQueued('second')).toBe(false);
    // A process that takes over does not get it either.
    expect(outbox.accepted).toEqual([]);
    outbox.add({ id: 'third', text: 'third' });
    outbox.advance('third', 'started');
    expect(outbox.isQueued('third')).toBe(false);
  });

  it('hands out only untouched messages for redelivery', () => {
    const outbox = outboxWith('a', 'b');
    expect(outbox.untouched.map(({ text }) => text)).toEqual(['a', 'b']);
    outbox.advance('a', 'queued');
    expect(outbox.untouched).toEqual([]);
  });

  it('remembers messages accepted but never answered, not those the caller is to resend', () => {
    const outbox = outboxWith('a', 'b', 'c');
    outbox.advance('b', 'started');
    expect(outbox.accepted).toEqual([]);
    expect(outbox.takeUndelivered()).toEqual(['a', 'c']);
    expect(outbox.accepted).toEqual([{ id: 'b', text: 'b' }]);
    outbox.add({ id: 'd', text: 'd' });
    expect(outbox.accepted).toEqual([{ id: 'b', text: 'b' }]);
    outbox.answered(['d']);
    expect(outbox.accepted).toEqual([]);
    const event = (id: number, body: SessionEvent['body']): SessionEvent => ({ id, type: 'progress', at: 0, body });
    const prompt = (text: string) => ({ kind: 'prompt', messageId: text, text }) as const;
    outbox.restore([event(1, prompt('d')), event(2, resultEvent({ text: 'done' })), event(3, prompt('e'))]);
    expect(outbox.accepted).toEqual([{ id: 'e', text: 'e' }]);
  });
});
