/** What rights a caller's answer can give: for the session only, and none that it could not have asked for as an option. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { shareHarness, startHarness } from '../harness/harness.ts';
import type { Harness } from '../harness/open-harness.ts';

const touch = (name: string) => tool('Bash', { command: `touch ${name}`, description: 'make a file' });
const RULE = { toolName: 'Bash', ruleContent: 'touch second.txt' };

const shared = shareHarness();

async function asking(h: Harness): Promise<{ h: Harness; answer: Record<string, unknown>; sessionId: string }> {
  h.model.on('make both').reply(touch('first.txt'), touch('second.txt'), text('made'));
  const sessionId = await h.converse('make both');
  const { requestId } = await h.waitForRequest(sessionId);
  return { h, sessionId, answer: { action: 'respond_permission', sessionId, requestId, decision: 'allow' } };
}

it('rights in an answer hold for the session, whatever destination it names, and it is said', async () => {
  const { h, answer, sessionId } = await asking(shared());
  const updatedPermissions = ['userSettings', 'projectSettings', 'localSettings'].map((destination) => ({
    type: 'addRules',
    rules: [RULE],
    behavior: 'allow',
    destination,
  }));
  const { warnings } = await h.ok('claude_code_check', { ...answer, updatedPermissions });
  expect(warnings).toHaveLength(3);
  expect(warnings[0]).toContain('this session only');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'made' } });
  expect(existsSync(join(h.project, 'second.txt'))).toBe(true);
  expect(existsSync(join(h.configDir, 'settings.json'))).toBe(false);
  expect(existsSync(join(h.project, '.claude'))).toBe(false);
});

it('rights in an answer are refused where the option for them is', async () => {
  const { h, answer, sessionId } = await asking(
    await startHarness({
      args: ['--deny-options', 'permissionMode,allowedTools,additionalDirectories,disallowedTools'],
    }),
  );
  const destination = 'session';
  for (const update of [
    { type: 'setMode', mode: 'acceptEdits', destination },
    { type: 'addRules', rules: [RULE], behavior: 'allow', destination },
    { type: 'replaceRules', rules: [RULE], behavior: 'allow', destination },
    { type: 'addRules', rules: [RULE], behavior: 'deny', destination },
    { type: 'addDirectories', directories: ['/tmp'], destination },
  ]) {
    const args = { ...answer, updatedPermissions: [update] };
    expect(await h.fails('claude_code_check', args, 'PERMISSION_DENIED')).toContain('CLAUDE_CODE_MCP_DENY_OPTIONS');
  }
  await h.fails('claude_code_check', { ...answer, always: true }, 'PERMISSION_DENIED');
  await h.ok('claude_code_check', { ...answer, decision: 'deny' });
  await h.waitForRequest(sessionId);
});

it('always allows the rules that Claude Code suggests, for this session, and no mode', async () => {
  const h = shared();
  const make = (name: string) => tool('Bash', { command: `npm pack ${name}`, description: 'pack' });
  h.model.on('pack twice').reply(make('--dry-run'), make('--dry-run'), text('packed'));
  const sessionId = await h.converse('pack twice');
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  expect(suggestions).toMatchObject([{ type: 'addRules', destination: 'localSettings' }]);
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow' };
  await h.fails('claude_code_check', { ...answer, decision: 'deny', always: true }, 'INVALID_ARGUMENT');
  expect(await h.ok('claude_code_check', { ...answer, permissionOptions: { always: true } })).not.toHaveProperty(
    'warnings',
  );
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'packed' } });
  expect(existsSync(join(h.project, '.claude'))).toBe(false);
});

it('always with a request for which only a mode is suggested allows once, and says so', async () => {
  const h = shared();
  const write = (name: string) => tool('Write', { file_path: join(h.project, name), content: 'x' });
  h.model.on('write two').reply(write('third.txt'), write('fourth.txt'), text('written'));
  const sessionId = await h.converse('write two');
  const { requestId, suggestions } = await h.waitForRequest(sessionId);
  expect(suggestions).toMatchObject([{ type: 'setMode' }]);
  const answer = { action: 'respond_permission', sessionId, requestId, decision: 'allow', always: true };
  expect(await h.ok('claude_code_check', answer)).toMatchObject({ warnings: [expect.stringContaining('once')] });
  await h.deny(sessionId);
  await h.waitUntilRest(sessionId);
  expect(existsSync(join(h.project, 'fourth.txt'))).toBe(false);
});
