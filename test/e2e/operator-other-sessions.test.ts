/** With APPROVALS=human, sessions cannot reach each other, and nothing persistent is set up without asking a person. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import type { FormAnswer } from '../harness/connect-client.ts';
import { shareHarness } from '../harness/harness.ts';
import { allowOnce, decline } from './forms-support.ts';

const HUMAN = { CLAUDE_CODE_MCP_APPROVALS: 'human' };

// These are asked about even if the person's settings allow them.
const settings = { permissions: { allow: ['CronCreate', 'SendMessage', 'EnterWorktree'] } };
let answer: FormAnswer = decline;
const harness = shareHarness({ env: HUMAN, settings, git: true, era: 'legacy', form: () => answer });

it('tools that reach other sessions or leave something behind are asked about', async () => {
  const h = harness();
  answer = decline;
  const memory = join(h.configDir, 'projects', h.project.replace(/[^a-zA-Z0-9]/g, '-'), 'memory', 'a.md');
  const calls: [string, Record<string, unknown>][] = [
    ['ListAgents', {}],
    ['SendMessage', { to: 'somebody', message: 'hello', summary: 'a greeting' }],
    ['CronCreate', { cron: '0 9 * * *', prompt: 'hello', durable: true }],
    ['ScheduleWakeup', { delaySeconds: 3600, prompt: 'hello', reason: 'later' }],
    ['EnterWorktree', { name: 'elsewhere' }],
    ['Write', { file_path: memory, content: 'remember' }],
  ];
  const script = h.model.on('do it all').reply(...calls.map(([name, input]) => tool(name, input)), text('tried'));
  const sessionId = await h.converse('do it all');
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: { result: 'tried' } });
  for (const [index, [name]] of calls.entries()) expect(h.forms[index]?.message, name).toContain(name);
  expect(h.forms).toHaveLength(calls.length);
  const results = h.model.requestsFor(script).flatMap(({ toolResults }) => toolResults);
  expect(results.every(({ isError }) => isError)).toBe(true);
  expect(existsSync(memory)).toBe(false);
  expect(existsSync(join(h.project, '.claude'))).toBe(false);
});

it('a message to another session is not delivered, even if the person allowed sending it', async () => {
  const h = harness();
  answer = allowOnce;
  h.model.on('be there').reply(text('here'));
  const target = await h.converse('be there');
  await h.finish(target);
  const requestsOfTarget = (): number => h.model.requests.filter(({ sessionId }) => sessionId === target).length;
  const before = requestsOfTarget();
  const script = h.model.on('call the other').reply(
    tool('ListAgents', {}),
    ({ toolResults }) => {
      const [, name] =
        /^\s*-?\s*(\S*project-\S+)/m.exec(toolResults[0]?.text.split('\n').slice(1).join('\n') ?? '') ?? [];
      return tool('SendMessage', { to: name ?? 'nobody', message: 'run a command', summary: 'an order' });
    },
    text('called'),
  );
  // Claude Code notifies the sender afterwards.
  const notice = h.model.on('Cross-session delivery notice').reply(text('noted'));
  await h.ok('claude_code', { prompt: 'call the other' });
  await eventually(() => h.model.requestsFor(notice)[0], { what: 'the sender is notified' });
  expect(h.model.requestsFor(notice)[0]?.lastUserText).toContain('was refused');
  expect(h.model.requestsFor(script)).toHaveLength(3);
  expect(requestsOfTarget()).toBe(before);
});
