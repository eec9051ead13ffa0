import { expect, test, vi } from 'vitest';
import { CallerOutbox, type Outbox } from './outbox.ts';

const { signal } = new AbortController();
const limits = { perConnection: 10, perCaller: 25, answersAtOnce: 2, maxWaiting: 3, patienceMs: 60_000 };

/** Whether an answer is admitted at once. */
async function isAdmitted(outbox: Outbox): Promise<boolean> {
  let admitted = false;
  void outbox
    .answer()
    .take(signal)
    .then(() => (admitted = true))
    .catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  return admitted;
}

test('an answer waits while its connection has too much to read, and others do not', async () => {
  const caller = new CallerOutbox(limits);
  const [stalled, reading] = [caller.connection(), caller.connection()];
  const read = stalled.add(10);
  const turn = stalled.answer();
  const waiting = turn.take(signal);
  expect(await isAdmitted(reading)).toBe(true);
  read();
  read();
  await waiting;
  expect(caller.unread).toBe(0);
});

test('all connections of a caller share one bound', async () => {
  const caller = new CallerOutbox(limits);
  const connections = [caller.connection(), caller.connection(), caller.connection(), caller.connection()];
  const reads = connections.slice(0, 3).map((one) => one.add(9));
  expect(caller.isFull).toBe(true);
  const waiting = connections[3]!.answer().take(signal);
  reads[0]!();
  await waiting;
});

test('only so many answers are put together at once; one that is handed over makes room', async () => {
  const outbox = new CallerOutbox(limits).shared();
  const [first, second, third] = [outbox.answer(), outbox.answer(), outbox.answer()];
  await first.take(signal);
  await first.take(signal);
  await second.take(signal);
  const waiting = third.take(signal);
  expect(await isAdmitted(outbox)).toBe(false);
  first.end();
  first.end();
  await waiting;
});

test('beyond the number that may wait, and after the time they may wait, calls are refused by name', async () => {
  vi.useFakeTimers();
  try {
    const outbox = new CallerOutbox(limits).connection();
    outbox.add(10);
    const waiting = [1, 2, 3].map(() => outbox.answer().take(signal));
    await expect(outbox.answer().take(signal)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    const refused = expect(Promise.all(waiting)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS' });
    vi.advanceTimersByTime(60_000);
    await refused;
  } finally {
    vi.useRealTimers();
  }
});

test('a call that its client has given up no longer waits', async () => {
  const outbox = new CallerOutbox({ ...limits, maxWaiting: 1 }).connection();
  const read = outbox.add(10);
  const gone = new AbortController();
  const waiting = outbox.answer().take(gone.signal);
  gone.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' });
  const next = outbox.answer().take(signal);
  read();
  await next;
});
