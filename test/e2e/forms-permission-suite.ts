/** What a person sees of a permission request, and the effect of their answer. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, it } from 'vitest';
import { reply, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { accept, allowOnce, choicesOf, decline, type SharedSession } from './forms-support.ts';

const touch = (name: string): ReturnType<typeof tool> =>
  tool('Bash', { command: `touch ${name}`, description: 'make a file' });

/** Requests reach the person, and their answers reach the session. */
export function permissionForms({ harness, ask }: SharedSession): void {
  it('lets its user allow a tool once', async () => {
    const { h, sessionId, file, forms, outcomes, auditedDecisions } = await ask(() => allowOnce);
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ status: 'idle', result: { result: 'done' } });

    expect(existsSync(file)).toBe(true);
    expect(forms()).toHaveLength(1);
    const [form] = forms();
    expect(form!.message).toContain(`Claude wants to use Bash.\ncommand: touch ${basename(file)}\n`);
    expect(form!.message).toContain(h.project);
    expect(choicesOf(form!)).toEqual(['Allow once', 'Always allow', 'Deny']);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human', toolName: 'Bash' }]);
    await eventually(() => auditedDecisions().length, { what: 'the decision is audited' });
    expect(auditedDecisions()).toEqual([{ who: 'human', what: 'Bash', outcome: 'allow' }]);
  });

  it('denies what its user declines', async () => {
    const { h, sessionId, file, outcomes } = await ask(() => decline);
    expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'done' } });
    expect(await outcomes()).toMatchObject([{ decision: 'deny', source: 'human', message: 'The user refused this.' }]);
    expect(existsSync(file)).toBe(false);
  });

  it('asks about parallel tool calls side by side, each with its own outcome', async () => {
    const [first, second] = [`${harness().home}/first.txt`, `${harness().home}/second.txt`];
    for (const file of [first, second]) writeFileSync(file, 'a secret');
    const { h, sessionId, script, forms, outcomes } = await ask(
      ({ message }) => (message.includes('first.txt') ? allowOnce : decline),
      { replies: [reply().tool('Read', { file_path: first }).tool('Read', { file_path: second })] },
    );
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(2);
    const settled = await outcomes();
    expect(settled.map(({ decision, source }) => `${decision} ${source}`).sort()).toEqual([
      'allow human',
      'deny human',
    ]);
    const results = h.model.requestsFor(script).at(-1)!.toolResults;
    expect(results.find(({ isError }) => !isError)?.text).toContain('a secret');
    expect(results.find(({ isError }) => isError)?.text).toBe('The user refused this.');
  });
}

/** What the form says and offers: the same for every client that can show one. */
export function permissionContents({ harness, ask }: SharedSession): void {
  it('lets its user always allow a tool, and adds only the rule that the form names', async () => {
    const piped = tool('Bash', { command: 'echo touch piped.txt | sh', description: 'run it' });
    const { h, sessionId, forms } = await ask(
      (request) =>
        choicesOf(request).includes('Always allow') ? accept({ decision: 'Always allow' }) : { action: 'decline' },
      {
        replies: [
          touch('made.txt'),
          // The rule covers it.
          touch('made.txt'),
          // No rule is added for a shell: only the same command is not asked about again.
          piped,
          piped,
          tool('Bash', { command: 'echo rm piped.txt | sh', description: 'run it' }),
          // `touch` also came with the suggestion to accept all edits, which must not have been granted.
          tool('Write', { file_path: `${harness().project}/written.txt`, content: 'one\n' }),
        ],
      },
    );
    await h.waitUntilRest(sessionId);

    expect(forms().map(({ message }) => message.split('\n')[0])).toEqual([
      'Claude wants to use Bash.',
      'Claude wants to use Bash.',
      'Claude wants to use Bash.',
      'Claude wants to use Write.',
    ]);
    const [first, shell, otherShell, write] = forms();
    expect(shell!.message).toContain('“Always allow” allows: exactly this command (this session only)');
    expect(otherShell!.message).toContain('echo rm piped.txt | sh');
    const [, rule] = /“Always allow” allows: (Bash\(touch made.txt.*?\)) \(your own settings/.exec(first!.message)!;
    expect(write!.message).toContain('change:\n│ + one');
    expect(choicesOf(write!)).toEqual(['Allow once', 'Deny']);
    const settings = readFileSync(`${h.project}/.claude/settings.local.json`, 'utf8');
    expect(JSON.parse(settings)).toMatchObject({ permissions: { allow: [rule] } });
    expect(settings).not.toContain('sh)');
    expect(existsSync(`${h.project}/written.txt`)).toBe(false);
    const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
    expect(sessions).toMatchObject([{ permissionMode: 'default' }]);
  });

  it('passes the reason for a refusal on to Claude', async () => {
    const refusal = accept({ decision: 'Deny', message: 'use the other directory' });
    const { h, sessionId, script, file, outcomes } = await ask(() => refusal);
    await h.waitUntilRest(sessionId);
    expect(h.model.requestsFor(script).at(-1)!.toolResults).toMatchObject([
      { isError: true, text: expect.stringContaining('The user refused this: use the other directory') },
    ]);
    expect(await outcomes()).toMatchObject([{ decision: 'deny', source: 'human' }]);
    expect(existsSync(file)).toBe(false);
  });

  it('shows a command of thousands of characters in full', async () => {
    // One long argument: Claude Code takes seconds to examine hundreds of them.
    const words = Array.from({ length: 1_000 }, (_, index) => `word ${index}`).join(' ');
    const command = `printf %s '${words}' > tail.txt`;
    const replies = [tool('Bash', { command, description: 'make a file' })];
    const { h, sessionId, forms } = await ask(() => decline, { replies });
    await h.waitUntilRest(sessionId);
    expect(forms()[0]!.message).toContain(`command: ${command}\n`);
  });

  it('shows an edit as a diff', async () => {
    const file = `${harness().project}/a.txt`;
    writeFileSync(file, 'one\ntwo\nthree\n');
    const replies = [
      tool('Read', { file_path: file }),
      tool('Edit', { file_path: file, old_string: 'one\ntwo\nthree', new_string: 'one\n2\nthree' }),
    ];
    const { h, sessionId, forms } = await ask(() => allowOnce, { replies });
    await h.waitUntilRest(sessionId);
    expect(forms()[0]!.message).toContain(`file_path: ${file}`);
    expect(forms()[0]!.message).toContain('change:\n│   one\n│ - two\n│ + 2\n│   three\n');
    expect(readFileSync(file, 'utf8')).toBe('one\n2\nthree\n');
  });
}
