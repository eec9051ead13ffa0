import { expect, test } from 'vitest';
import { STREAM_MESSAGES } from '../../src/schema/api-events.ts';
import type { ServerSentEvent } from '../../src/hub/http/route.ts';
import { ask, put, request, session, settle } from '../store/rows.ts';
import { ADMIN, CALLER, openApi, assistantMessage, OTHER, type Reader } from './api-world.ts';

const names = ({ events }: Reader): string[] => events.map(({ event: name = '' }) => name);
const lastId = ({ events }: Reader): string => events.at(-1)?.id ?? '';
const isLive = ({ event: name }: ServerSentEvent): boolean => name === 'live';

test('a new reader is live at once and receives everything that happens from then on', async () => {
  const world = await openApi();
  await world.write(put(session('s1', world.hub, { principal: 'carl' })), assistantMessage('s1', 1));
  const reader = await world.stream(ADMIN, '/api/v1/events');
  await expect.poll(() => names(reader)).toEqual(['live']);
  const asked = request('s1', 'r1');
  await world.write(assistantMessage('s1', 2), ask(asked));
  await expect.poll(() => names(reader)).toEqual(['live', 'event', 'request']);
  await world.write(settle(asked), put(session('s1', world.hub, { principal: 'carl', state: { tag: 'idle' } })));
  await expect.poll(() => names(reader)).toEqual(['live', 'event', 'request', 'request', 'session']);
  const ids = reader.events.map(({ id }) => Number(id));
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  for (const { event: name, data } of reader.events) STREAM_MESSAGES[name as keyof typeof STREAM_MESSAGES].parse(data);
  expect(reader.events[3]?.data).toMatchObject({ requestId: 'r1', status: 'settled' });
});

test('a returning reader gets what it missed, each row once in its current state, then `live`', async () => {
  const world = await openApi();
  await world.write(put(session('s1', world.hub)));
  const first = await world.stream(ADMIN, '/api/v1/events');
  await expect.poll(() => first.events.some(isLive)).toBe(true);
  const seen = lastId(first);
  await first.close();
  for (let id = 1; id <= 250; id++) await world.write(assistantMessage('s1', id), put(session('s1', world.hub)));
  const again = await world.stream(ADMIN, '/api/v1/events', { 'last-event-id': seen });
  await expect.poll(() => again.events.some(isLive)).toBe(true);
  expect(names(again).filter((name) => name === 'event')).toHaveLength(250);
  expect(names(again).filter((name) => name === 'session')).toHaveLength(1);
  expect(names(again).at(-1)).toBe('live');
  expect(names(again)).not.toContain('reset');
});

test.each(['99999999', 'nonsense', '-1'])('from the invalid position %s the stream starts with a reset', async (id) => {
  const world = await openApi();
  await world.write(put(session('s1', world.hub)));
  const reader = await world.stream(ADMIN, '/api/v1/events', { 'last-event-id': id });
  await expect.poll(() => names(reader)).toEqual(['reset', 'live']);
  expect(STREAM_MESSAGES.reset.parse(reader.events[0]?.data).position).toBe(1);
});

test('a reader that was away too long gets a reset', async () => {
  const world = await openApi();
  await world.write(put(session('s1', world.hub)));
  for (let batch = 0; batch < 11; batch++)
    await world.write(...Array.from({ length: 1000 }, (_, index) => assistantMessage('s1', batch * 1000 + index + 1)));
  const reader = await world.stream(ADMIN, '/api/v1/events', { 'last-event-id': '1' });
  await expect.poll(() => names(reader)).toEqual(['reset', 'live']);
});

test('a caller receives only its own sessions, but its position still advances', async () => {
  const world = await openApi();
  await world.write(put(session('mine', world.hub, { principal: 'carl' })));
  await world.write(put(session('theirs', world.hub, { principal: 'olga' })));
  const [carl, olga] = [await world.stream(CALLER, '/api/v1/events'), await world.stream(OTHER, '/api/v1/events')];
  await expect.poll(() => carl.events.some(isLive) && olga.events.some(isLive)).toBe(true);
  const many = Array.from({ length: 1500 }, (_, index) => assistantMessage('theirs', index + 1));
  await world.write(...many, ask(request('theirs', 'r1')));
  await expect.poll(() => names(olga).filter((name) => name === 'request')).toHaveLength(1);
  // No content, only a new position.
  await expect.poll(() => names(carl)).toEqual(['live', 'live']);
  expect(Number(lastId(carl))).toBeGreaterThan(1000);
  expect(JSON.stringify(carl.events)).not.toContain('theirs');
});

test('readers that could see a session are told of its removal, even if they were away', async () => {
  const world = await openApi();
  await world.write(
    put(session('mine', world.hub, { principal: 'carl' })),
    put(session('theirs', world.hub, { principal: 'olga' })),
  );
  const [admin, carl] = [await world.stream(ADMIN, '/api/v1/events'), await world.stream(CALLER, '/api/v1/events')];
  await expect.poll(() => admin.events.some(isLive) && carl.events.some(isLive)).toBe(true);
  const seen = lastId(admin);
  await world.store.forget({ before: Number.MAX_SAFE_INTEGER, limit: 9 });
  const removed = ({ events }: Reader) =>
    events.filter((one) => one.event === 'removed').map(({ data }) => STREAM_MESSAGES.removed.parse(data).sessionId);
  await expect.poll(() => removed(admin)).toEqual(['mine', 'theirs']);
  await expect.poll(() => removed(carl)).toEqual(['mine']);
  expect(JSON.stringify(carl.events)).not.toContain('theirs');
  const again = await world.stream(ADMIN, '/api/v1/events', { 'last-event-id': seen });
  await expect.poll(() => removed(again)).toEqual(['mine', 'theirs']);
});

test('the stream can be limited to one session, or to no session events', async () => {
  const world = await openApi();
  await world.write(put(session('s1', world.hub)), put(session('s2', world.hub)));
  const one = await world.stream(ADMIN, '/api/v1/events?session=s1');
  const quiet = await world.stream(ADMIN, '/api/v1/events?events=false');
  await expect.poll(() => one.events.some(isLive) && quiet.events.some(isLive)).toBe(true);
  await world.write(
    assistantMessage('s1', 1),
    assistantMessage('s2', 1),
    ask(request('s2', 'r2')),
    ask(request('s1', 'r1')),
  );
  await expect.poll(() => names(one)).toEqual(['live', 'event', 'request']);
  await expect.poll(() => names(quiet)).toEqual(['live', 'request', 'request']);
});

test('a slow reader does not slow others, and catches up without a gap', async () => {
  const world = await openApi();
  const sessions = Array.from({ length: 10 }, (_, index) => `s${index}`);
  await world.write(...sessions.map((id) => put(session(id, world.hub))));
  const [slow, quick] = [await world.stream(ADMIN, '/api/v1/events'), await world.stream(ADMIN, '/api/v1/events')];
  await expect.poll(() => slow.events.some(isLive) && quick.events.some(isLive)).toBe(true);
  slow.pause();
  // More than the shared buffer holds.
  for (const id of sessions)
    await world.write(...Array.from({ length: 500 }, (_, index) => assistantMessage(id, index + 1)));
  const received = ({ events }: Reader): string[] =>
    events.filter((one) => one.event === 'event').map(({ data }) => JSON.stringify(data));
  await expect.poll(() => received(quick).length, { timeout: 10_000 }).toBe(5_000);
  expect(slow.events).toHaveLength(1);
  slow.resume();
  await expect.poll(() => received(slow).length, { timeout: 10_000 }).toBe(5_000);
  expect(received(slow)).toEqual(received(quick));
});
