/** ALLOWED_DIRS inside a session: what Claude Code's own tools reach. */

import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ToolResult } from '../../src/scripted-model/model-request.ts';
import { text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { openHarness, type Harness } from '../harness/open-harness.ts';

const SECRET = 'what lies outside';

describe('in a session of an allowed directory', () => {
  let h: Harness;
  let outside: string;
  let neighbour: string;
  let inProject: (name: string) => string;

  beforeAll(async () => {
    h = await openHarness();
    inProject = (name) => join(h.project, name);
    outside = join(h.home, 'outside');
    neighbour = join(h.project, '../neighbour');
    for (const directory of [outside, neighbour]) await mkdir(directory);
    await writeFile(join(outside, 'secret.txt'), SECRET);
    await writeFile(join(neighbour, 'note.txt'), 'what lies next door');
    await writeFile(inProject('own.txt'), 'what lies inside');
    await symlink(join(outside, 'secret.txt'), inProject('link.txt'));
    await symlink(outside, inProject('way-out'));
    await h.restartServer({ args: ['--allowed-dirs', '.,../neighbour', '--allow-bypass'] });
  });
  afterAll(() => h.close(), 40_000);

  /** What the tools answered, one after the other, in one session that was asked nothing. */
  async function results(calls: readonly MessageReply[], options: Record<string, unknown>): Promise<ToolResult[]> {
    const prompt = `try ${JSON.stringify(options)}`;
    const script = h.model.on(prompt).reply(...calls, text('tried'));
    expect(await h.ok('claude_code', { prompt, waitMs: 40_000, ...options })).toMatchObject({ status: 'idle' });
    const requests = h.model.requestsFor(script);
    expect(JSON.stringify(requests.map(({ body }) => body))).not.toContain(SECRET);
    return requests.slice(1).flatMap(({ toolResults }) => toolResults);
  }

  const reads = (): MessageReply[] => [
    tool('Read', { file_path: join(outside, 'secret.txt') }),
    tool('Read', { file_path: inProject('link.txt') }),
    tool('Read', { file_path: inProject('way-out/secret.txt') }),
  ];
  const searches = (): MessageReply[] => [
    tool('Grep', { pattern: 'what lies', path: outside, output_mode: 'content' }),
    tool('Grep', { pattern: 'what lies', path: inProject('way-out'), output_mode: 'content' }),
    tool('Glob', { pattern: '*.txt', path: outside }),
  ];
  const writes = (): MessageReply[] => [
    tool('Write', { file_path: join(outside, 'new.txt'), content: 'new' }),
    tool('Write', { file_path: inProject('way-out/new.txt'), content: 'new' }),
  ];
  const refused = expect.objectContaining({
    isError: true,
    text: expect.stringMatching(/is outside .* setting blocks (reads|writes) outside/),
  });

  it('file tools read and write nothing outside, though they were allowed in advance', async () => {
    const calls = [...reads(), ...searches(), ...writes()];
    const answers = await results(calls, { allowedTools: ['Read', 'Grep', 'Glob', 'Write'] });
    expect(answers).toEqual(calls.map(() => refused));
    expect(await readdir(outside)).not.toContain('new.txt');
  });

  it('bypassPermissions and settings of the caller’s own do not lift it', async () => {
    const permissions = {
      blockReadsOutsideWorkingDirectories: false,
      blockWritesOutsideWorkingDirectories: false,
      blockReadsExemptPaths: [outside],
      allow: ['Read', `Edit(/${outside}/**)`],
    };
    await writeFile(inProject('lifting.json'), JSON.stringify({ permissions }));
    const calls = [...reads(), ...writes()];
    const answers = await results(calls, { permissionMode: 'bypassPermissions', settings: 'lifting.json' });
    expect(answers).toEqual(calls.map(() => refused));
    expect(await readdir(outside)).not.toContain('new.txt');
  });

  it('another allowed directory can be read, and written to when it was opened for the session', async () => {
    const calls = [
      tool('Read', { file_path: join(neighbour, 'note.txt') }),
      tool('Write', { file_path: join(neighbour, 'new.txt'), content: 'new' }),
    ];
    const allowedTools = ['Read', 'Write'];
    expect(await results(calls, { allowedTools })).toMatchObject([{ text: '1\twhat lies next door' }, refused]);
    const opened = await results(calls, { allowedTools, additionalDirectories: [neighbour] });
    expect(opened).toMatchObject([{ isError: false }, { isError: false }]);
    expect(await readdir(neighbour)).toEqual(['new.txt', 'note.txt']);
  });

  it('a linked CLAUDE.md is not loaded from outside', async () => {
    await writeFile(join(outside, 'memory.md'), SECRET);
    await symlink(join(outside, 'memory.md'), inProject('CLAUDE.md'));
    await writeFile(inProject('CLAUDE.local.md'), `kept inside @${join(outside, 'memory.md')}`);
    const script = h.model.on('remember').reply(text('done'));
    await h.ok('claude_code', { prompt: 'remember', waitMs: 40_000 });
    const sent = JSON.stringify(h.model.requestsFor(script).map(({ body }) => body));
    expect(sent).toContain('kept inside');
    expect(sent).not.toContain(SECRET);
  });

  it('a command that names a path outside is asked about, also in bypassPermissions', async () => {
    const command = `grep -R lies ${outside}`;
    h.model.on('search').reply(tool('Bash', { command, description: 'search' }), text('searched'));
    const { sessionId } = await h.ok('claude_code', { prompt: 'search', permissionMode: 'bypassPermissions' });
    expect(await h.waitForRequest(sessionId)).toMatchObject({ toolName: 'Bash', input: { command } });
  });
});
