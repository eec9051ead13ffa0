/** ALLOWED_DIRS inside a session: what Claude Code's own tools can reach. */

import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ToolResult } from '../../src/scripted-model/model-request.ts';
import { text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import { openHarness, type Harness } from '../harness/open-harness.ts';

const SECRET = 'what lies outside';

describe('in an allowed directory', () => {
  let h: Harness;
  let outside: string;
  let neighbour: string;
  let inProject: (name: string) => string;
  /** The session of the last attempt. */
  let tried: string;

  beforeAll(async () => {
    h = await openHarness({ args: ['--allowed-dirs', '.,../neighbour', '--allow-bypass'], prepare });
  });
  afterAll(() => h.close(), 40_000);

  async function prepare({ home, project }: Harness): Promise<void> {
    inProject = (name) => join(project, name);
    outside = join(home, 'outside');
    neighbour = join(project, '../neighbour');
    for (const directory of [outside, neighbour]) await mkdir(directory);
    await writeFile(join(outside, 'secret.txt'), SECRET);
    await writeFile(join(neighbour, 'note.txt'), 'what lies next door');
    await writeFile(inProject('own.txt'), 'what lies inside');
    await symlink(join(outside, 'secret.txt'), inProject('link.txt'));
    await symlink(outside, inProject('way-out'));
    await writeFile(join(outside, 'memory.md'), SECRET);
    await symlink(join(outside, 'memory.md'), inProject('CLAUDE.md'));
    await writeFile(inProject('CLAUDE.local.md'), `kept inside @${join(outside, 'memory.md')}`);
  }

  /** The results of these tool calls, in order, in a session that makes no request. */
  async function results(calls: readonly MessageReply[], options: Record<string, unknown>): Promise<ToolResult[]> {
    const prompt = `try ${JSON.stringify(options)}`;
    const script = h.model.on(prompt).reply(...calls, text('tried'));
    const { sessionId, status } = await h.ok('claude_code', { prompt, waitMs: 40_000, ...options });
    expect(status).toBe('idle');
    tried = sessionId;
    const requests = h.model.requestsFor(script);
    const sent = JSON.stringify(requests.map(({ body }) => body));
    expect(sent).toContain('kept inside');
    expect(sent).not.toContain(SECRET);
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
  const nextDoor = (): MessageReply[] => [
    tool('Read', { file_path: join(neighbour, 'note.txt') }),
    tool('Write', { file_path: join(neighbour, 'new.txt'), content: 'new' }),
  ];
  const refused = expect.objectContaining({
    isError: true,
    text: expect.stringMatching(/is outside .* setting blocks (reads|writes) outside/),
  });

  it('file tools read and write nothing outside, even if allowed in advance, and a linked CLAUDE.md is not loaded from outside', async () => {
    const calls = [...reads(), ...searches(), ...writes()];
    const allowedTools = ['Read', 'Grep', 'Glob', 'Write'];
    const answers = await results([...calls, ...nextDoor()], { allowedTools });
    expect(answers.slice(0, calls.length)).toEqual(calls.map(() => refused));
    // Another allowed directory can be read.
    expect(answers.slice(calls.length)).toMatchObject([{ text: '1\twhat lies next door' }, refused]);
    expect(await readdir(outside)).not.toContain('new.txt');
  });

  it('another allowed directory can be written to if it was opened for the session', async () => {
    const allowedTools = ['Read', 'Write'];
    const opened = await results(nextDoor(), { allowedTools, additionalDirectories: [neighbour] });
    expect(opened).toMatchObject([{ isError: false }, { isError: false }]);
    expect(await readdir(neighbour)).toEqual(['new.txt', 'note.txt']);
  });

  it('neither bypassPermissions nor the caller’s own settings lift this, and a command that names a path outside is asked about', async () => {
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

    const command = `grep -R lies ${outside}`;
    h.model.on('search').reply(tool('Bash', { command, description: 'search' }), text('searched'));
    await h.say(tried, 'search');
    expect(await h.waitForRequest(tried)).toMatchObject({ toolName: 'Bash', input: { command } });
  });
});
