import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { requirementCoverage } from './requirement-coverage.ts';
import { defineRequirements } from './requirements.ts';

const program = fileURLToPath(new URL('fixtures/stand-in-server.mjs', import.meta.url));
const ran: string[] = [];

const { verifies } = defineRequirements({ 'stand-in.era': 'says its era', 'stand-in.toolset': 'is told its toolset' });

verifies(['stand-in.era', 'stand-in.toolset'], { toolsets: ['compact', 'explicit'] }, async (variant) => {
  const h = await variant.start({ program });
  ran.push(`${variant.era} ${variant.toolset}`);
  expect(await h.ok('era', {})).toEqual({ era: variant.era });
  expect(await h.ok('environment', {})).toMatchObject({ CLAUDE_CODE_MCP_TOOLSET: variant.toolset });
});

afterAll(() => {
  expect(ran).toEqual(['legacy compact', 'modern compact', 'legacy explicit', 'modern explicit']);
});

it('finds what is not verified, not defined, not readable', () => {
  const directory = mkdtempSync(join(tmpdir(), 'requirements-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const source = `
    verifies('a.one', async () => {});
    verifies(['a.two', "a.typo"], { eras: ['legacy'] }, async () => {});
    // verifies('a.in-comment', async () => {});
    const text = "verifies('a.in-text')";
    verifies(ids, async () => {});`;
  writeFileSync(join(directory, 'some.test.ts'), source);
  writeFileSync(join(directory, 'helper.ts'), `verifies('a.in-helper', async () => {});`);

  const requirements = { 'a.one': '', 'a.two': '', 'a.in-comment': '', 'a.in-text': '', 'a.in-helper': '' };
  expect(requirementCoverage(requirements, directory)).toEqual({
    unverified: ['a.in-comment', 'a.in-text', 'a.in-helper'],
    undefined: ['a.typo'],
    unreadable: ['some.test.ts:6'],
  });
});
