import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runRules, type RulesCommandContext } from '../../src/cli/rules/run-rules.ts';
import { ApiFailure, HubUnreachable, type HubApi } from '../../src/cli/client/hub-api.ts';
import type { Store } from '../../src/store/contract.ts';
import { STORES, temporaryDirectory } from '../store/stores.ts';

interface Scene {
  run(...args: string[]): Promise<{ code: number; out: string; err: string }>;
  readonly store: Store;
  readonly directory: string;
}

async function openScene(more: Partial<RulesCommandContext> = {}, answer = 'y'): Promise<Scene> {
  const store = await STORES.sqlite();
  const directory = await temporaryDirectory();
  return {
    store,
    directory,
    async run(...args) {
      let [out, err] = ['', ''];
      const plain = (text: string): string => text;
      const terminal = {
        paint: new Proxy({}, { get: () => plain }),
        isLive: false,
        columns: 80,
        canAsk: true,
        write: (text: string) => void (out += text),
        ask: async () => answer,
        ...more.terminal,
      } as RulesCommandContext['terminal'];
      const code = await runRules(args, {
        openStore: async () => ({ ...store, close: async () => undefined }),
        openHub: () => undefined,
        refusal: undefined,
        writeError: (text) => void (err += text),
        cwd: directory,
        now: Date.now,
        record: () => undefined,
        ...more,
        terminal,
      });
      return { code, out, err };
    },
  };
}

test('a rule is made, listed, exported, imported and removed', async () => {
  const { run, store, directory } = await openScene();
  const made = await run('add', 'allow', 'Bash(npm test)', '--note', 'the tests', '--expires', '30d');
  expect(made).toMatchObject({ code: 0, out: expect.stringContaining("project's own code") });
  const [rule] = await store.rules();
  expect(rule).toMatchObject({ decision: 'allow', tool: 'Bash', match: 'npm test', directory, createdBy: 'person' });
  expect((await run('list')).out).toContain(`allow  Bash(npm test)  in ${directory}  (the tests)`);
  const [listed] = JSON.parse((await run('list', '--json')).out);
  expect(listed).toMatchObject({ id: rule?.id, uses: 0, enabled: true, expiresAt: expect.any(String) });
  const file = path.join(directory, 'pack.json');
  await writeFile(file, (await run('export')).out);
  await chmod(file, 0o600);
  expect((await run('import', file)).code).toBe(0);
  expect(await store.rules()).toHaveLength(2);
  for (const { id } of await store.rules()) expect((await run('remove', id)).code).toBe(0);
  expect((await run('list')).out).toBe('There are no rules.\n');
});

test('a rule that decides nothing is listed as such, and not exported: importing it would put it in force', async () => {
  const { run, store } = await openScene();
  const content = { decision: 'allow', tool: 'Bash', createdBy: 'person', createdAt: 1, enabled: true } as const;
  for (const rule of [
    { ...content, id: 'active', match: 'npm test' },
    { ...content, id: 'off', match: 'npm publish', enabled: false },
    { ...content, id: 'expired', match: 'npm audit', expiresAt: 2 },
    { ...content, id: 'orphan', match: 'npm ci', createdBy: 'token:t_gone' },
  ])
    await store.write([{ type: 'rule.put', rule }]);
  const { out } = await run('list');
  for (const [id, words] of [
    ['off', 'disabled'],
    ['expired', 'expired 1970'],
    ['orphan', 'off: its author has lost the role'],
    ['active', 'never used'],
  ] as const)
    expect(out.split('\n').find((line) => line.startsWith(`${id} `))).toMatch(new RegExp(`${words}.*$`));
  const listed = JSON.parse((await run('list', '--json')).out) as { id: string; inactive?: string }[];
  expect(Object.fromEntries(listed.map(({ id, inactive }) => [id, inactive]))).toEqual({
    ...{ active: undefined, off: 'disabled', expired: 'expired', orphan: 'author' },
  });
  const exported = await run('export');
  expect(JSON.parse(exported.out).rules).toEqual([{ decision: 'allow', tool: 'Bash', match: 'npm test' }]);
  expect(exported.err).toContain('Left out: 3 rules');
});

test.each<[string, Error, string]>([
  ['refuses', new ApiFailure(403, { error: { code: 'PERMISSION_DENIED', message: 'too wide' } }), ': too wide\n'],
  ['stops at', new HubUnreachable('it is not running'), 'Either all of it was made or nothing; "rules list" shows'],
])(
  'nothing is made of a file when the hub %s one of its rules and is gone after that',
  async (_what, failure, words) => {
    const made: object[] = [];
    const hub = {
      async post(path: string, body: { rules?: { match?: string }[]; match?: string }) {
        if (path.endsWith('/replay')) return { considered: 0, matched: 0, allowed: 0, denied: 0, requests: [] };
        // What one call makes is made in one transaction.
        const rules = body.rules ?? [body];
        if (rules.some(({ match }) => match === 'npm ci')) throw failure;
        made.push(...rules);
        return { rule: { id: 'r_1' } };
      },
      delete: () => Promise.reject(new HubUnreachable('it is not running')),
    };
    const { run, directory } = await openScene({ openHub: () => hub as unknown as HubApi });
    const file = path.join(directory, 'pack.json');
    const rules = ['npm test', 'npm ci', 'npm audit'].map((match) => ({ decision: 'allow', tool: 'Bash', match }));
    await writeFile(file, JSON.stringify({ rules }));
    expect(await run('import', file)).toMatchObject({ code: 1, err: expect.stringContaining(words) });
    expect(made).toEqual([]);
  },
);

test('a pack is for this repository unless the person says otherwise', async () => {
  const { run, store, directory } = await openScene();
  const replay = JSON.parse((await run('replay', 'reading', '--json')).out);
  expect(replay).toMatchObject({ matched: 0, allowed: 0, denied: 0 });
  expect((await run('import', 'reading')).code).toBe(0);
  expect((await store.rules()).every((rule) => rule.directory === directory)).toBe(true);
  expect((await run('import', 'git-local', '--everywhere')).code).toBe(0);
  expect((await store.rules()).some((rule) => rule.directory === undefined)).toBe(true);
});

test('a file with a rule that is too wide is not imported at all', async () => {
  const { run, store, directory } = await openScene();
  const file = path.join(directory, 'pack.json');
  const rules = ['ls *', 'npm *'].map((match) => ({ decision: 'allow', tool: 'Bash', match }));
  await writeFile(file, JSON.stringify({ rules }));
  expect(await run('import', file)).toMatchObject({ code: 1, err: expect.stringContaining('write the command out') });
  expect(await store.rules()).toEqual([]);
});

test('nothing is made without a yes', async () => {
  const { run, store } = await openScene({}, 'n');
  expect((await run('add', 'deny', 'Bash(git push *)')).code).toBe(1);
  expect(await store.rules()).toEqual([]);
});

test.each(['Bash(rm -rf *', 'Bash rm -rf *', 'Bash(rm) -rf', 'Bash()'])(
  'a rule that could match nothing is refused: deny %s',
  async (text) => {
    const { run, store } = await openScene();
    expect(await run('add', 'deny', text)).toMatchObject({
      code: 1,
      err: expect.stringContaining(`"${text}" is not the name of a tool.`),
    });
    expect(await store.rules()).toEqual([]);
  },
);

test.each([
  ['below a session', { refusal: 'not below a session' }, 'not below a session'],
  ['without a terminal', { terminal: { canAsk: false } as RulesCommandContext['terminal'] }, 'interactive terminal'],
])('%s rules are read, not changed', async (_what, more, words) => {
  const { run, store } = await openScene(more);
  for (const args of [
    ['add', 'allow', 'Bash(npm test)'],
    ['remove', 'x'],
    ['import', 'reading'],
  ])
    expect(await run(...args)).toMatchObject({ code: 1, err: expect.stringContaining(words) });
  expect((await run('list')).code).toBe(0);
  expect((await run('replay', 'allow', 'Bash(npm test)')).code).toBe(0);
  expect(await store.rules()).toEqual([]);
});

test.each([
  [[], 'takes list, add'],
  [['frobnicate'], 'rules has no action'],
  [['lits'], 'did you mean list'],
  [['add', 'allow'], 'a decision and a tool'],
  [['add', 'maybe', 'Bash(npm test)'], 'A rule cannot decide "maybe"; it takes deny, ask or allow'],
  [['add', 'allow', 'Bash(npm test)', '--expires', 'soon'], '--expires takes'],
  [['add', 'allow', 'Bash(npm test)', '--exires', '30d'], 'did you mean --expires'],
  [['add', 'allow', 'Bash(npm test)', '--json'], 'has no flag'],
  [['add', 'allow', 'Bash(x)', '--directory', '/a', '--everywhere'], '--directory or --everywhere'],
  [['replay', 'readin'], 'did you mean reading?'],
  [['remove'], 'the id of a rule'],
  [['list', 'x'], 'does not take'],
])('rules %j is a mistake', async (args, words) => {
  const { run, store } = await openScene();
  await expect(run(...args)).rejects.toThrow(words);
  expect(await store.rules()).toEqual([]);
});
