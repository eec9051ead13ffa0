import { expect, onTestFinished, test } from 'vitest';
import { RuleBook, type RuleBookOptions } from '../../src/hub/rules/rule-book.ts';
import { RuleManager } from '../../src/hub/rules/manage-rules.ts';
import { replayRules } from '../../src/hub/rules/replay.ts';
import { eventually } from '../harness/eventually.ts';
import * as rows from '../store/rows.ts';
import { KINDS, openStore, STORES } from '../store/stores.ts';

const ADMIN = { id: 'person', role: 'admin' } as const;
const RULE = { decision: 'allow', tool: 'Bash', match: 'npm test' } as const;
const CALL = { toolName: 'Bash', input: { command: 'npm test' } };
const PLACE = { owner: 'local', cwd: '/a', roots: [{ real: '/a', countsAs: '/a' }], realPath: (file: string) => file };

async function open(store: RuleBookOptions['store']): Promise<RuleBook> {
  const book = await RuleBook.open({ store, now: Date.now, warn: () => undefined });
  onTestFinished(() => book.close());
  return book;
}

const decides = (book: RuleBook): boolean => book.inForce.decide(CALL, PLACE, Date.now()) !== undefined;

test.each(KINDS)('a rule that is changed once is in force for everyone on %s within a second', async (kind) => {
  const store = await STORES[kind]();
  const books = await Promise.all([open(store), open(store)]);
  const manager = new RuleManager(store);
  const all = (expected: boolean, what: string): Promise<unknown> =>
    eventually(() => books.every((book) => decides(book) === expected), { what, within: 1_000 });
  const [rule] = await manager.create([RULE], ADMIN);
  await all(true, 'it is in force');
  await manager.change(rule!.id, { enabled: false }, ADMIN);
  expect(await books[0].confirm(rule!)).toBe(false);
  await all(false, 'it is not in force any more');
  await manager.change(rule!.id, { enabled: true }, ADMIN);
  await all(true, 'it is in force again');
  books[0].used(rule!.id);
  books[1].used(rule!.id);
  books[1].used(rule!.id);
  await eventually(async () => (await store.rule(rule!.id))?.uses === 3, { what: 'its uses are counted' });
  await manager.remove(rule!.id, ADMIN);
  expect(await books[1].confirm(rule!)).toBe(false);
});

test('while the store is away no rule allows anything', async () => {
  const store = await STORES.sqlite();
  let away = false;
  const failing = { ...store, rule: (id: string) => (away ? Promise.reject(new Error('away')) : store.rule(id)) };
  const [rule] = await new RuleManager(store).create([RULE], ADMIN);
  const book = await open(failing);
  expect(decides(book)).toBe(true);
  expect(await book.confirm(rule!)).toBe(true);
  away = true;
  expect(await book.confirm(rule!)).toBe(false);
});

test('a rule stops when its author loses the role', async () => {
  const store = await STORES.sqlite();
  const book = await open(store);
  const put = (more: Parameters<typeof rows.token>[1]): Promise<void> =>
    store.write([{ type: 'token.put', token: rows.token('t', { role: 'approver', ...more }) }]);
  await put({});
  const author = { id: 'token:t', role: 'approver' } as const;
  const [rule] = await new RuleManager(store).create([{ ...RULE, directory: process.cwd() }], author);
  expect(await book.confirm(rule!)).toBe(true);
  await put({ revokedAt: 1 });
  expect(await book.confirm(rule!)).toBe(false);
  await put({ expiresAt: 1 });
  expect(await book.confirm(rule!)).toBe(false);
  await put({ role: 'caller' });
  expect(await book.confirm(rule!)).toBe(false);
  await put({});
  expect(await book.confirm(rule!)).toBe(true);
  await book.look();
  const place = { ...PLACE, roots: [{ real: process.cwd(), countsAs: process.cwd() }] };
  expect(book.inForce.decide(CALL, place, Date.now())).toBeDefined();
  await put({ revokedAt: 1 });
  await eventually(() => book.inForce.rules.length === 0, { what: 'it is no longer in force', within: 2_000 });
});

test('who may make which rule', async () => {
  const manager = new RuleManager(await STORES.sqlite());
  const approver = { id: 'token:a', role: 'approver' } as const;
  const refused = expect.objectContaining({ code: 'PERMISSION_DENIED' });
  for (const role of ['viewer', 'caller'] as const)
    await expect(manager.create([{ ...RULE, directory: process.cwd() }], { id: 'x', role })).rejects.toEqual(refused);
  await expect(manager.create([RULE], approver)).rejects.toEqual(refused);
  await expect(manager.create([{ ...RULE, directory: '/' }], approver)).rejects.toEqual(refused);
  const [narrow] = await manager.create([{ ...RULE, directory: process.cwd() }], approver);
  await expect(manager.change(narrow!.id, { directory: null }, approver)).rejects.toEqual(refused);
  const [wide] = await manager.create([RULE], ADMIN);
  for (const patch of [{ enabled: false }, { note: 'x' }])
    await expect(manager.change(wide!.id, patch, approver)).rejects.toEqual(refused);
  await expect(manager.remove(wide!.id, approver)).rejects.toEqual(refused);
  // Whoever changes it answers for it; switching it off is no such change.
  expect(await manager.change(narrow!.id, { enabled: false }, ADMIN)).toMatchObject({ createdBy: 'token:a' });
  expect(await manager.change(narrow!.id, { enabled: true }, ADMIN)).toMatchObject({ createdBy: 'person' });
  const invalid = expect.objectContaining({ code: 'INVALID_ARGUMENT' });
  for (const match of ['npm *', 'npm test && id', undefined])
    await expect(manager.create([{ decision: 'allow', tool: 'Bash', match }], ADMIN)).rejects.toEqual(invalid);
  await expect(manager.create([{ ...RULE, expiresAt: 1 }], ADMIN)).rejects.toEqual(invalid);
  await expect(manager.create([{ ...RULE, directory: 'relative' }], ADMIN)).rejects.toEqual(invalid);
});

test('a replay tells what people decided on what a rule matches', async () => {
  const { store, hub } = await openStore('sqlite');
  const ask = (command: string, more: object = {}) => ({
    ask: { toolName: 'Bash', input: { command }, cwd: '/a', scope: { repository: '/a', directory: '/a' }, ...more },
  });
  const asked = [
    ['1', 'npm test', rows.allow('person', 10), {}],
    ['2', 'npm test', rows.allow('person', 11), {}],
    ['3', 'npm test', { ...rows.allow('token:x', 12), decision: 'deny' }, {}],
    ['4', 'npm test', { ...rows.allow('caller', 13), source: 'caller' }, {}],
    ['5', 'npm test', rows.allow('person', 14), { needsPerson: 'x' }],
    ['6', 'npm run build', rows.allow('person', 15), {}],
    ['7', 'npm test', rows.allow('person', 16), { cwd: '/b', scope: { repository: '/b', directory: '/b' } }],
  ] as const;
  await store.write([rows.put(rows.session('s', hub))], hub);
  for (const [id, command, outcome, more] of asked) {
    const request = rows.request('s', id, ask(command, more));
    await store.write([rows.ask(request), rows.settle(request, outcome)], hub);
  }
  const replay = await replayRules([{ ...rows.rule('r', { directory: '/a' }), uses: 0 }], store, 0);
  expect(replay).toMatchObject({ considered: 7, matched: 4, allowed: 2, denied: 1, others: 1 });
  expect(replay.requests.map(({ requestId }) => requestId)).toEqual(['3', '4', '2', '1']);
  expect(replay.requests[0]).toMatchObject({ decision: 'deny', by: 'token:x', summary: 'npm test' });
  expect(await replayRules([{ ...rows.rule('r'), uses: 0 }], store, 13)).toMatchObject({ considered: 4, matched: 2 });
});
