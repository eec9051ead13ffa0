/** With APPROVALS=human, whenever a process starts, a directory that no person has trusted grants and runs nothing. */

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';

const HUMAN = { CLAUDE_CODE_MCP_APPROVALS: 'human' };

/** Sets up every way a repository can run or allow something; each leaves a file `ran-…` behind. */
async function makeEager(directory: string): Promise<string> {
  const ran = (name: string): string => `touch ${join(directory, `ran-${name}`)}`;
  const settings = {
    permissions: { allow: ['Bash(touch ran-allowed)'] },
    hooks: { SessionStart: [{ hooks: [{ type: 'command', command: ran('hook') }] }] },
    apiKeyHelper: `${ran('helper')}; echo key`,
    enableAllProjectMcpServers: true,
  };
  const skill = [
    '---',
    'name: eager',
    'description: eager',
    'allowed-tools: Bash(touch ran-skill)',
    '---',
    'Be eager.',
    '',
  ];
  const server = { command: 'sh', args: ['-c', `${ran('server')}; sleep 60`] };
  await mkdir(join(directory, '.claude', 'skills', 'eager'), { recursive: true });
  await mkdir(join(directory, '.claude', 'commands'), { recursive: true });
  await writeFile(join(directory, '.claude', 'settings.json'), JSON.stringify(settings));
  await writeFile(join(directory, '.claude', 'settings.local.json'), JSON.stringify(settings));
  await writeFile(join(directory, '.claude', 'skills', 'eager', 'SKILL.md'), skill.join('\n'));
  await writeFile(join(directory, '.claude', 'commands', 'rush.md'), skill.slice(3).join('\n'));
  await writeFile(join(directory, '.mcp.json'), JSON.stringify({ mcpServers: { eager: server } }));
  return directory;
}

/** A file that its repository has git pass through a program; it is as committed only to those who do. */
function makeFilter(directory: string): void {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x', ...args], { cwd: directory });
  git('init', '--quiet');
  writeFileSync(join(directory, 'filtered'), 'one\n');
  writeFileSync(join(directory, '.gitattributes'), 'filtered filter=eager\n');
  git('add', 'filtered', '.gitattributes');
  git('commit', '--quiet', '--message', 'begin');
  const ran = `touch ${join(directory, 'ran-filter')}; cat`;
  for (const name of ['clean', 'smudge']) git('config', `filter.eager.${name}`, ran);
  writeFileSync(join(directory, 'filtered'), 'two\n');
}

const touch = (name: string) => tool('Bash', { command: `touch ran-${name}`, description: 'touch' });

function tries(h: Harness): void {
  h.model
    .on('try it')
    .reply(touch('allowed'), tool('Skill', { skill: 'eager' }), touch('skill'), tool('Skill', { skill: 'rush' }))
    .reply(text('tried'));
}

async function eagerIn(h: Harness, name: string): Promise<string> {
  const directory = join(h.home, name);
  await mkdir(directory);
  return makeEager(directory);
}

function whatRan(directory: string): string[] {
  return readdirSync(directory).filter((name) => name.startsWith('ran-'));
}

async function trust(h: Harness, directory: string): Promise<void> {
  const projects = { [directory]: { hasTrustDialogAccepted: true } };
  await writeFile(join(h.configDir, '.claude.json'), JSON.stringify({ projects }));
}

async function attempt(h: Harness, args: Record<string, unknown>): Promise<{ sessionId: string; warnings?: string[] }> {
  tries(h);
  const name = 'sessionId' in args ? 'claude_code_reply' : 'claude_code';
  return h.ok(name, { prompt: 'try it', waitMs: 40_000, ...args });
}

describe('with APPROVALS=human', () => {
  // With room for one session, starting another parks the first.
  const harness = shareHarness({ env: HUMAN, args: ['--max-sessions', '1'] });

  it('nothing in an untrusted directory takes effect, in a start, a fork or a reply after parking; the server’s own needs no trust', async () => {
    const h = harness();
    const eager = await eagerIn(h, 'untrusted');
    makeFilter(eager);
    const { sessionId, warnings } = await attempt(h, { cwd: eager });
    expect(warnings).toEqual([expect.stringContaining(`${eager} is not trusted`)]);

    await makeEager(h.project);
    const { warnings: own = [] } = await attempt(h, {});
    expect(JSON.stringify(own)).not.toContain('were skipped');
    expect(existsSync(join(h.project, 'ran-hook'))).toBe(true);

    for (const forkSession of [false, true])
      expect(await attempt(h, { sessionId, forkSession })).toMatchObject({
        warnings: [expect.stringContaining('trusted')],
      });
    const { diff } = await h.ok('claude_code_session', { action: 'diff', sessionId });
    expect(diff).toBeDefined();
    const workspace = { type: 'worktree' };
    await attempt(h, { cwd: eager, advanced: { workspace } });
    expect(whatRan(eager)).toEqual([]);
  });

  it('hooks and rules in a trusted directory take effect until the trust is revoked; a link to a worktree that the trusted repository does not know is not trusted', async () => {
    const h = harness();
    const eager = await eagerIn(h, 'trusted');
    await trust(h, eager);
    const started = await attempt(h, { cwd: eager });
    expect(started).not.toHaveProperty('warnings');
    expect(whatRan(eager)).toEqual(expect.arrayContaining(['ran-hook', 'ran-allowed']));
    const { sessionId } = started;

    // Takes the only slot: a process that still ran could write the trust back.
    const linked = await eagerIn(h, 'linked');
    const worktree = join(h.home, 'repository', '.git', 'worktrees', 'w');
    await mkdir(worktree, { recursive: true });
    await trust(h, join(h.home, 'repository'));
    await writeFile(join(linked, '.git'), `gitdir: ${worktree}\n`);
    expect(await attempt(h, { cwd: linked })).toHaveProperty('warnings');
    expect(whatRan(linked)).toEqual([]);

    await writeFile(join(h.configDir, '.claude.json'), '{}');
    for (const name of whatRan(eager)) await rm(join(eager, name));
    expect(await attempt(h, { sessionId })).toHaveProperty('warnings');
    expect(whatRan(eager)).toEqual([]);
  });

  it('a directory inside ALLOWED_DIRS needs no trust', async () => {
    const h = await startHarness({ env: HUMAN, args: ['--allowed-dirs', '.,../home'] });
    const directory = await eagerIn(h, 'eager');
    const { warnings = [] } = await attempt(h, { cwd: directory });
    expect(JSON.stringify(warnings)).not.toContain('were skipped');
    expect(existsSync(join(directory, 'ran-hook'))).toBe(true);
  });

  it('the explicit toolset warns of an untrusted directory too', async () => {
    const h = await startHarness({ env: HUMAN, toolset: 'explicit' });
    const eager = await eagerIn(h, 'eager');
    tries(h);
    const { sessionId, warnings } = await h.ok('claude_create_session', { prompt: 'try it', workingDirectory: eager });
    expect(warnings).toEqual([expect.stringContaining('trusted')]);
    await h.finish(sessionId);
    expect(whatRan(eager)).toEqual([]);
  });
});
