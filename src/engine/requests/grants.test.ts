import { describe, expect, test } from 'vitest';
import { digestOf, GRANT_LIFETIME_MS, Grants, type AskedCall } from './grants.ts';

const call = (more: Partial<AskedCall> = {}): AskedCall => ({
  toolName: 'Bash',
  input: { command: 'npm test', timeout: 5 },
  cwd: '/project',
  ...more,
});

function setUp() {
  let now = 1_000;
  const events: string[] = [];
  const grants = new Grants('s', () => now, {
    added: ({ tool }) => void events.push(`added ${tool}`),
    closed: ({ tool }, end) => void events.push(`${end.how} ${tool}`),
  });
  return { grants, events, pass: (ms: number) => (now += ms) };
}

const allow = { behavior: 'allow' } as const;

describe('a grant', () => {
  test.each<[string, Partial<AskedCall>, boolean]>([
    ['the same call', {}, true],
    ['the same call with its keys reordered', { input: { timeout: 5, command: 'npm test' } }, true],
    ['another command', { input: { command: 'npm run build', timeout: 5 } }, false],
    ['one more key', { input: { command: 'npm test', timeout: 5, run_in_background: true } }, false],
    ['another tool', { toolName: 'PowerShell' }, false],
    ['another directory', { cwd: '/project/sub' }, false],
  ])('for one call, repeated as %s: %o, %j', (_name, made, fits) => {
    const { grants } = setUp();
    grants.add('r1', call(), allow);
    expect(grants.use({ toolUseId: 't2' }, call(made)) !== undefined).toBe(fits);
  });

  test('can be used once', () => {
    const { grants, events } = setUp();
    grants.add('r1', call(), allow);
    expect(grants.use({ toolUseId: 't2' }, call())?.decision).toEqual(allow);
    expect(grants.use({ toolUseId: 't3' }, call())).toBeUndefined();
    expect(events).toEqual(['added Bash', 'used Bash']);
  });

  test('exists once per identical request', () => {
    const { grants } = setUp();
    for (const id of ['r1', 'r2', 'r3']) grants.add(id, call(), allow);
    for (let use = 0; use < 3; use++) expect(grants.use({ toolUseId: 't' }, call())?.decision).toEqual(allow);
    expect(grants.use({ toolUseId: 't' }, call())).toBeUndefined();
  });

  test('carries the changed input and the updated permissions', () => {
    const { grants } = setUp();
    const decision = {
      behavior: 'allow' as const,
      updatedInput: { command: 'npm test -- --run' },
      updatedPermissions: [{ type: 'setMode' as const, mode: 'acceptEdits' as const, destination: 'session' as const }],
    };
    grants.add('r1', call(), decision);
    expect(grants.use({ toolUseId: 't2' }, call())?.decision).toEqual(decision);
  });

  test('does not apply once its target has changed', () => {
    const { grants } = setUp();
    grants.add('r1', call({ target: 'before' }), allow);
    expect(grants.use({ toolUseId: 't2' }, call({ target: 'after' }))).toBeUndefined();
    expect(grants.use({ toolUseId: 't2' }, call({ target: 'before' }))?.decision).toEqual(allow);
  });

  test('lapses at the end of its lifetime', () => {
    const { grants, events, pass } = setUp();
    grants.add('r1', call(), allow);
    pass(GRANT_LIFETIME_MS);
    expect(grants.use({ toolUseId: 't2' }, call())).toBeUndefined();
    expect(events).toEqual(['added Bash', 'lapsed Bash']);
  });

  test('lapses when the session comes to rest', () => {
    const { grants, events } = setUp();
    grants.add('r1', call(), allow);
    expect(grants.lapseAll().map(({ requestId }) => requestId)).toEqual(['r1']);
    expect(grants.lapseAll()).toEqual([]);
    expect(events).toEqual(['added Bash', 'lapsed Bash']);
  });
});

test('the digest ignores key order and undefined values, and nothing else', () => {
  expect(digestOf({ a: 1, b: { c: [1, { d: 2, e: undefined }] } })).toBe(digestOf({ b: { c: [1, { d: 2 }] }, a: 1 }));
  expect(digestOf({ a: [1, 2] })).not.toBe(digestOf({ a: [2, 1] }));
  expect(digestOf({ a: '1' })).not.toBe(digestOf({ a: 1 }));
});
