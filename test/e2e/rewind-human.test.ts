/** Where only a person decides, a rewind of real files is theirs to allow. */

import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { ERAS } from '../harness/connect-client.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';
import type { HarnessOptions } from '../harness/open-harness.ts';
import { allowOnce, auditedEntries, decline, SlowPerson, start } from './forms-support.ts';

const env = { CLAUDE_CODE_MCP_APPROVALS: 'human' };
/** What Claude writes needs no form, so that only the rewind does. */
const settings = { permissions: { allow: ['Read', 'Edit'] } };

/** A session that has changed a file, and the call that would rewind it. */
async function changedFile(options: HarnessOptions) {
  const h = await startHarness({ env, settings, ...options });
  const file = path.join(h.project, 'kept.txt');
  await writeFile(file, 'before\n');
  const edit = tool('Edit', { file_path: file, old_string: 'before', new_string: 'after' });
  h.model.on('change it').reply(tool('Read', { file_path: file }), edit, text('ok'));
  const sessionId = await start(h, 'change it', { advanced: { enableFileCheckpointing: true } });
  await h.waitUntilRest(sessionId);
  const { events } = await h.ok('claude_code_check', { action: 'poll', sessionId, responseMode: 'full' });
  const [toUserMessage] = events.findLast(({ type }: Json) => type === 'result').data.user_message_uuids;
  const rewind = { action: 'rewind', sessionId, toUserMessage, dryRun: false };
  const content = (): Promise<string> => readFile(file, 'utf8');
  return { h, file, sessionId, rewind, content };
}

describe.each(ERAS)('a rewind asked for by a %s client', (era) => {
  it('asks the person, who sees which files: declined it changes nothing, allowed it is done', async () => {
    const person = new SlowPerson();
    const { h, file, sessionId, rewind, content } = await changedFile({ era, form: person.form });
    expect(await h.ok('claude_code_session', { ...rewind, dryRun: true })).toMatchObject({
      sessions: [{ status: 'idle' }],
    });
    const refused = h.fails('claude_code_session', rewind, 'PERMISSION_DENIED');
    (await person.nextForm()).answer(decline);
    expect(await refused).toContain('The user refused this');
    expect(await content()).toBe('after\n');

    const rewinding = h.ok('claude_code_session', rewind);
    const { request, answer } = await person.nextForm(1);
    expect(request.message).toContain('The caller wants to rewind 1 file(s)');
    expect(request.message).toContain(file);
    const { status, actions } = await h.ok('claude_code_check', { action: 'poll', sessionId });
    expect(status).toBe('waiting_permission');
    expect(actions).toMatchObject([{ type: 'permission', toolName: 'Rewind', input: { files: [file] } }]);
    expect(await content()).toBe('after\n');
    answer(allowOnce);
    expect(await rewinding).toMatchObject({
      sessions: [{ status: 'idle' }],
      message: `Restored 1 file(s): ${file} (+1 -1).`,
    });
    expect(await content()).toBe('before\n');
    const decisions = await auditedEntries(h, ({ kind }) => kind === 'decision', 2);
    expect(decisions).toMatchObject([
      { who: 'human', what: 'Rewind', outcome: 'deny' },
      { who: 'human', what: 'Rewind', outcome: 'allow' },
    ]);
    expect(person.shown).toHaveLength(2);
  });
});

it('a rewind changes nothing and says why when nobody can be asked', async () => {
  const { h, rewind, content } = await changedFile({});
  expect(await h.fails('claude_code_session', rewind, 'PERMISSION_DENIED')).toContain('cannot show a form');
  expect(await content()).toBe('after\n');
  h.model.on('go on').reply('still here');
  const reply = { sessionId: rewind.sessionId, prompt: 'go on', waitMs: 40_000 };
  expect(await h.ok('claude_code_reply', reply)).toMatchObject({ status: 'idle', result: { result: 'still here' } });
});
