/** Under `human` a directory carries rights: what a person has not trusted brings none along, at any start of a process. */

import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import type { Harness, HarnessOptions } from '../harness/open-harness.ts';

const HUMAN = { CLAUDE_CODE_MCP_APPROVALS: 'human' };

/** A directory with everything by which a repository can act or allow; each leaves a file `ran-…` behind. */
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

async function open(options: HarnessOptions = {}): Promise<{ h: Harness; eager: string }> {
  const h = await startHarness({ ...options, env: { ...HUMAN, ...options.env } });
  const eager = join(h.home, 'eager');
  await mkdir(eager);
  await makeEager(eager);
  const touch = (name: string) => tool('Bash', { command: `touch ran-${name}`, description: 'touch' });
  const attempt = [
    touch('allowed'),
    tool('Skill', { skill: 'eager' }),
    touch('skill'),
    tool('Skill', { skill: 'rush' }),
  ];
  const script = h.model.on('try it');
  for (let times = 0; times < 4; times++) script.reply(...attempt, text('tried'));
  return { h, eager };
}

function whatRan(directory: string): string[] {
  return readdirSync(directory).filter((name) => name.startsWith('ran-'));
}

async function trust(h: Harness, directory: string): Promise<void> {
  const projects = { [directory]: { hasTrustDialogAccepted: true } };
  await writeFile(join(h.configDir, '.claude.json'), JSON.stringify({ projects }));
}

describe('under human', () => {
  it('an untrusted directory brings nothing along, at a start, a resume, a fork and after a park', async () => {
    const { h, eager } = await open({ args: ['--max-sessions', '1'] });
    const attempt = { prompt: 'try it', waitMs: 30_000 };
    const started = await h.ok('claude_code', { ...attempt, cwd: eager });
    expect(started.warnings).toEqual([expect.stringContaining(`${eager} is not trusted`)]);
    const { sessionId } = started;
    // Takes the only place, so that the session has no process any more.
    h.model.on('hello').reply(text('hello'));
    expect(await h.ok('claude_code', { prompt: 'hello', waitMs: 30_000 })).not.toHaveProperty('warnings');
    for (const forkSession of [false, true])
      expect(await h.ok('claude_code_reply', { ...attempt, sessionId, forkSession })).toMatchObject({
        warnings: [expect.stringContaining('trusted')],
      });
    expect(whatRan(eager)).toEqual([]);
  });

  it('explicit says so too', async () => {
    const { h, eager } = await open({ toolset: 'explicit' });
    const { sessionId, warnings } = await h.ok('claude_create_session', { prompt: 'try it', workingDirectory: eager });
    expect(warnings).toEqual([expect.stringContaining('trusted')]);
    await h.finish(sessionId);
    expect(whatRan(eager)).toEqual([]);
  });

  it('a directory that a person has trusted is used whole, until the trust is taken back', async () => {
    const { h, eager } = await open({ args: ['--max-sessions', '1'] });
    await trust(h, eager);
    const started = await h.ok('claude_code', { prompt: 'try it', waitMs: 30_000, cwd: eager });
    expect(started).not.toHaveProperty('warnings');
    expect(whatRan(eager)).toEqual(expect.arrayContaining(['ran-hook', 'ran-allowed']));
    const { sessionId } = started;
    // Takes the only place: a process that still ran could write the trust down again.
    h.model.on('hello').reply(text('hello'));
    await h.ok('claude_code', { prompt: 'hello', waitMs: 30_000 });
    await writeFile(join(h.configDir, '.claude.json'), '{}');
    for (const name of whatRan(eager)) await rm(join(eager, name));
    expect(await h.ok('claude_code_reply', { prompt: 'try it', waitMs: 30_000, sessionId })).toHaveProperty('warnings');
    expect(whatRan(eager)).toEqual([]);
  });

  it.each<[string, (h: Harness) => string, string[]]>([
    ['the server’s own directory', (h) => h.project, []],
    ['one inside ALLOWED_DIRS', (h) => join(h.home, 'eager'), ['--allowed-dirs', '.,../home']],
  ])('%s needs no trust', async (_which, place, args) => {
    const { h } = await open({ args });
    const directory = await makeEager(place(h));
    const { warnings = [] } = await h.ok('claude_code', { prompt: 'try it', waitMs: 30_000, cwd: directory });
    expect(JSON.stringify(warnings)).not.toContain('were skipped');
    expect(existsSync(join(directory, 'ran-hook'))).toBe(true);
  });

  it('a link to a trusted worktree that the repository knows nothing of is no trust', async () => {
    const { h, eager } = await open();
    await mkdir(join(h.home, 'trusted', '.git', 'worktrees', 'w'), { recursive: true });
    await trust(h, join(h.home, 'trusted'));
    await writeFile(join(eager, '.git'), `gitdir: ${join(h.home, 'trusted', '.git', 'worktrees', 'w')}\n`);
    expect(await h.ok('claude_code', { prompt: 'try it', waitMs: 30_000, cwd: eager })).toHaveProperty('warnings');
    expect(whatRan(eager)).toEqual([]);
  });
});
