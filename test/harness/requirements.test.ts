import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { requirementCoverage } from './requirement-coverage.ts';
import { defineRequirements, type Variant } from './requirements.ts';

const program = fileURLToPath(new URL('fixtures/stand-in-server.mjs', import.meta.url));
const ran: string[] = [];

const { verifies } = defineRequirements({
  both: {
    'stand-in.era': 'says its era',
    'stand-in.toolset': 'gets its toolset',
    'stand-in.engine': 'does the same in both',
  },
  compact: { 'stand-in.compact': 'is only in one' },
  explicit: { 'stand-in.explicit': 'is only in the other toolset' },
  engine: ['stand-in.engine'],
  protocol: ['stand-in.era'],
});

async function run(name: string, variant: Variant): Promise<void> {
  ran.push(`${name} ${variant.era} ${variant.toolset}`);
  if (name !== 'both') return;
  const h = await variant.start({ program });
  expect(await h.ok('era', {})).toEqual({ era: variant.era });
  expect(await h.ok('environment', {})).toMatchObject({ CLAUDE_CODE_MCP_TOOLSET: variant.toolset });
}

verifies(['stand-in.era', 'stand-in.toolset'], (variant) => run('both', variant));
verifies(['stand-in.era', 'stand-in.compact'], (variant) => run('shared', variant));
verifies('stand-in.era', { toolsets: ['explicit'], when: 'narrowed' }, (variant) => run('narrowed', variant));
verifies('stand-in.toolset', (variant) => run('in each', variant));
verifies('stand-in.engine', (variant) => run('of the engine', variant));
verifies('stand-in.toolset', { eras: ['legacy'], when: 'in one era' }, (variant) => run('in one era', variant));

const shared = new Map<string, number>();

/** The second test of a variant gets the first one's server. */
async function shares({ era, toolset, share }: Variant): Promise<void> {
  const { server } = await share({ program });
  const variant = `${era} ${toolset}`;
  expect(server.pid).toBe(shared.get(variant) ?? server.pid);
  expect([...shared].filter(([, pid]) => pid === server.pid)).toEqual(
    shared.has(variant) ? [[variant, server.pid]] : [],
  );
  shared.set(variant, server.pid);
}

verifies('stand-in.toolset', { when: 'on a shared server' }, shares);
verifies('stand-in.toolset', { when: 'on the same shared server' }, shares);

afterAll(() => {
  expect(ran).toEqual([
    'both modern compact',
    'both legacy explicit',
    'shared legacy compact',
    'shared modern compact',
    'narrowed legacy explicit',
    'narrowed modern explicit',
    'in each modern compact',
    'in each legacy explicit',
    'of the engine modern compact',
    'in one era legacy compact',
    'in one era legacy explicit',
  ]);
});

it('refuses a test for a toolset its requirements do not apply to', () => {
  const body = (): Promise<void> => Promise.resolve();
  expect(() => verifies(['stand-in.compact', 'stand-in.explicit'], body)).toThrow('apply to no toolset');
  expect(() => verifies('stand-in.compact', { toolsets: ['explicit'] }, body)).toThrow('apply to compact');
});

it('finds requirements not verified in a toolset, undefined ids and calls it cannot read', () => {
  const directory = mkdtempSync(join(tmpdir(), 'requirements-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const source = `
    verifies('a.one', async () => {});
    verifies(['a.two', "a.typo"], { toolsets: ['compact'] }, async () => {});
    // verifies('a.in-comment', async () => {});
    const text = "verifies('a.in-text')";
    verifies(ids, async () => {});
    verifies('a.hidden', { toolsets }, async () => {});
    verifies('a.hidden', { toolsets: [compact] }, async () => {});
    verifies('a.hidden', options, async () => {});
    verifies('a.hidden', { ...options }, async () => {});
    verifies(['a.three', 'a.compact'], { timeout: LONG }, async () => {});
    verifies('a.engine', async () => {});
    verifies(['a.engine-too', 'a.one'], { toolsets: ['explicit'] }, async () => {});`;
  writeFileSync(join(directory, 'some.test.ts'), source);
  writeFileSync(join(directory, 'helper.ts'), `verifies('a.in-helper', async () => {});`);

  const { requirements } = defineRequirements({
    both: {
      'a.one': '',
      'a.two': '',
      'a.three': '',
      'a.hidden': '',
      'a.engine': '',
      'a.engine-too': '',
      'a.engine-never': '',
    },
    compact: { 'a.in-comment': '', 'a.in-text': '', 'a.in-helper': '', 'a.compact': '' },
    explicit: { 'a.explicit': '' },
    engine: ['a.engine', 'a.engine-too', 'a.engine-never'],
    protocol: [],
  });
  expect(requirementCoverage(requirements, directory)).toEqual({
    unverified: [
      'a.two [explicit]',
      'a.three [explicit]',
      'a.hidden [compact]',
      'a.hidden [explicit]',
      'a.engine-never [compact]',
      'a.engine-never [explicit]',
      'a.in-comment [compact]',
      'a.in-text [compact]',
      'a.in-helper [compact]',
      'a.explicit [explicit]',
    ],
    undefined: ['a.typo'],
    unreadable: [6, 7, 8, 9, 10].map((line) => `some.test.ts:${line}`),
  });
});
