import fc from 'fast-check';
import { expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { openAccessWorld, PEOPLE } from './access-world.ts';

const CALLS = 800;
const STREAMS = 200;
const CONCURRENCY = 40;

const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1e309',
    '%00',
    '../..',
    'null',
    '[]',
    '{}',
    '9007199254740993',
    'é\u202e',
    "' OR 1=1",
  ),
);
const query = fc
  .dictionary(fc.constantFrom('limit', 'after', 'status', 'search', 'owner', 'hub', 'session', 'offset', 'x'), text, {
    maxKeys: 3,
  })
  .map((fields) => `?${new URLSearchParams(fields).toString()}`);
const body = fc.oneof(
  fc.constant('{'),
  fc.json({ maxDepth: 3 }),
  fc
    .dictionary(
      fc.constantFrom(
        'prompt',
        'cwd',
        'advanced',
        'decision',
        'answers',
        'always',
        'mode',
        'force',
        'name',
        'role',
        'token',
        'x',
      ),
      fc.jsonValue({ maxDepth: 2 }),
      { maxKeys: 4 },
    )
    .map((fields) => JSON.stringify(fields)),
);

test('random calls and streams on the real routes cause no internal error and leave no stream open', async () => {
  const world = await openAccessWorld();
  const { sessionId, requestId } = await world.make('waiting');
  const { subscribe } = world.store;
  let listeners = 0;
  world.store.subscribe = (wake) => {
    const unsubscribe = subscribe(wake);
    listeners++;
    return () => {
      listeners--;
      unsubscribe();
    };
  };
  const paths = world.routes.map(({ path }) => path);
  const call = fc.record({
    method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT'),
    path: fc.constantFrom(...paths),
    id: fc.oneof(fc.constantFrom(sessionId, requestId), text.map(encodeURIComponent)),
    query,
    body,
    person: fc.constantFrom(...PEOPLE),
    headers: fc.dictionary(
      fc.constantFrom('idempotency-key', 'last-event-id', 'accept', 'x-forwarded-for', 'origin', 'content-type'),
      fc.oneof(
        fc.string({ maxLength: 20 }).filter(isHeader),
        fc.constantFrom('text/event-stream', 'application/json', '1'),
      ),
      { maxKeys: 2 },
    ),
  });
  const send = async ({
    method,
    path,
    id,
    query: queryString,
    body: sent,
    person,
    headers,
  }: typeof call extends fc.Arbitrary<infer T> ? T : never): Promise<void> => {
    const where = path.replaceAll(/\{\w+\}/g, id || 'x');
    const withBody = method === 'POST' || method === 'PUT';
    const response = await fetch(`${world.url}${where}${queryString}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers, ...world.token(person) },
      ...(withBody && { body: sent }),
    });
    expect(response.status, `${method} ${where}${queryString} ${sent}`).not.toBe(500);
    await response.body?.cancel();
  };
  const pending = [
    ...fc.sample(call, CALLS),
    ...fc.sample(call, STREAMS).map((one) => ({ ...one, method: 'GET' as const, path: '/api/v1/events' })),
  ];
  while (pending.length > 0) await Promise.all(pending.splice(0, CONCURRENCY).map(send));
  await eventually(() => listeners === 0, { what: 'all streams are closed' });
  expect((await world.call('GET', '/api/v1/sessions', world.token('owner'))).status).toBe(200);
});

function isHeader(value: string): boolean {
  return /^[\x21-\x7e]*$/.test(value);
}
