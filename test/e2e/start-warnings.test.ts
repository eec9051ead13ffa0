/** Warnings of a start: allow rules that Claude Code ignores because nobody has trusted the project. */

import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';
import { standInEnv } from './stand-in.ts';

const RULES = { permissions: { allow: ['Bash(touch *)'] } };

async function writeRules(directory: string, file: string): Promise<void> {
  await mkdir(join(directory, '.claude'), { recursive: true });
  await writeFile(join(directory, '.claude', file), JSON.stringify(RULES));
}

function trust(h: Harness, ...directories: string[]): Promise<void> {
  const projects = Object.fromEntries(directories.map((directory) => [directory, { hasTrustDialogAccepted: true }]));
  return writeFile(join(h.configDir, '.claude.json'), JSON.stringify({ projects }));
}

/** Starts a session that touches a file; returns the warnings, and whether the touch was asked about. */
async function touch(h: Harness, cwd: string): Promise<{ warnings: string[]; asked: boolean }> {
  h.model.on('touch it').reply(tool('Bash', { command: 'touch made.txt', description: 'x' }), text('made'));
  const { sessionId, warnings = [] } = await h.ok(...h.dialect.start('touch it', { cwd }));
  const { status } = await h.until(sessionId, (view) => view.status !== 'running');
  if (status === 'waiting') await h.deny(sessionId);
  await h.finish(sessionId);
  return { warnings, asked: status === 'waiting' };
}

async function folder(h: Harness, ...names: string[]): Promise<string> {
  const directory = join(h.project, ...names);
  await mkdir(directory, { recursive: true });
  return directory;
}

async function untrusted(h: Harness): Promise<string> {
  const project = await folder(h, 'untrusted');
  await writeRules(project, 'settings.json');
  return project;
}

function expectWarning(h: Harness, project: string, warnings: string[]): void {
  expect(warnings).toHaveLength(1);
  for (const words of ['.claude/settings.json', project, 'hasTrustDialogAccepted', join(h.configDir, '.claude.json')])
    expect(warnings[0]).toContain(words);
}

describe('compact', () => {
  const harness = shareHarness();

  test('ignored allow rules of an untrusted project are named, with how to trust it', async () => {
    const h = harness();
    const project = await untrusted(h);
    const { warnings, asked } = await touch(h, project);
    expect(asked).toBe(true);
    expectWarning(h, project, warnings);
  });

  test('trusting a parent directory does not count', async () => {
    const h = harness();
    const sub = await folder(h, 'trusted', 'sub');
    await writeRules(sub, 'settings.json');
    await trust(h, dirname(sub));
    expect(await touch(h, sub)).toEqual({ warnings: [expect.stringContaining(sub)], asked: true });
  });

  test('local rules need no trust', async () => {
    const h = harness();
    const project = await folder(h, 'local');
    await writeRules(project, 'settings.local.json');
    expect(await touch(h, project)).toEqual({ warnings: [], asked: false });
  });

  test('in a repository, trusting the root counts', async () => {
    const h = harness();
    const sub = await folder(h, 'repository', 'sub');
    execFileSync('git', ['init', '--quiet', dirname(sub)]);
    await writeRules(sub, 'settings.json');
    await trust(h, dirname(sub));
    expect(await touch(h, sub)).toEqual({ warnings: [], asked: false });
  });
});

// What counts as trust, and what Claude Code does with it, is the same for both toolsets.
test('the explicit toolset names them too', async () => {
  const h = await startHarness({ toolset: 'explicit', env: standInEnv('ordinary') });
  const project = await untrusted(h);
  const { warnings } = await h.ok(...h.dialect.start('hello', { cwd: project }));
  expectWarning(h, project, warnings);
});
