import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'vitest';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import { eventually } from '../harness/eventually.ts';
import { claudePid } from './claude-process.ts';
import { verifies } from './requirements.ts';
import { openTerminal } from './terminal-claude.ts';

verifies(['message.from-terminal', 'message.together', 'life.held'], async (variant) => {
  const h = await variant.share();
  const elsewhere = path.join(path.dirname(h.project), 'elsewhere');
  await mkdir(elsewhere);
  h.model.on('remember the word').reply(text('noted'));
  const terminal = await openTerminal(h, 'remember the word xylophone', { cwd: elsewhere });
  const { sessionId, pid } = terminal;
  await h.fails('claude_get_status', { sessionId }, 'SESSION_NOT_FOUND');
  const message = await h.fails(...h.dialect.say(sessionId, 'let me in'), 'SESSION_BUSY');
  expect(message).toContain(`pid ${pid}`);

  await terminal.close();
  h.model.on(/message [ab]/).always(text('come in'));
  const accepted = await Promise.all(['message a', 'message b'].map((words) => h.say(sessionId, words)));
  for (const answer of accepted) expect(answer).toEqual({ sessionId, status: 'running' });
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'come in' });
  const heard = h.model.requests.at(-1)?.userTexts;
  expect(heard?.[0]).toContain('xylophone');
  for (const words of ['message a', 'message b']) expect(heard?.join('\n')).toContain(words);
  expect((await h.processes()).filter(({ command }) => command.includes(sessionId))).toHaveLength(1);

  h.model.on('go on').reply(tool('Bash', { command: 'touch here.txt', description: 'x' }), text('done'));
  await h.say(sessionId, 'go on');
  expect(await h.nextRequest(sessionId)).toMatchObject({ type: 'permission', toolName: 'Bash' });
  await h.allow(sessionId);
  expect(await h.waitUntilRest(sessionId)).toMatchObject({ result: 'done', recentOutput: ['done'] });
  expect(existsSync(path.join(elsewhere, 'here.txt'))).toBe(true);
});

verifies('life.held', { when: 'even if this server started it', toolsets: ['compact'] }, async (variant) => {
  const env = { CLAUDE_CODE_MCP_PARK_AFTER_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
  const h = await variant.start({ env });
  h.model.on('ours').reply(text('done'));
  h.model.on('theirs').reply(text('done'));
  h.model.on('ours again').reply(text('back'));
  const sessionId = await h.begin('ours');
  await h.finish(sessionId);
  await eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'the session is parked' });

  const terminal = await openTerminal(h, 'theirs', { resume: sessionId });
  const message = await h.fails(...h.dialect.say(sessionId, 'ours again'), 'SESSION_BUSY');
  expect(message).toContain(`pid ${terminal.pid}`);

  await terminal.close();
  await h.say(sessionId, 'ours again');
  expect(await h.finish(sessionId)).toMatchObject({ status: 'rest', answer: 'back' });
});

verifies(['message.forgotten', 'life.ttl'], { toolsets: ['explicit'] }, async (variant) => {
  const env = { CLAUDE_CODE_MCP_SESSION_TTL_MS: '1', CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: '50' };
  const h = await variant.start({ env });
  h.model.on('first').reply(text('one'));
  const held = gate(text('two'));
  const second = h.model.on('second').reply(held);
  const sessionId = await h.begin('first');
  const isForgotten = async (): Promise<boolean> => (await h.call(...h.dialect.look(sessionId))).isError;
  await eventually(isForgotten, { what: 'the session is forgotten' });
  await eventually(async () => (await claudePid(h, sessionId)) === undefined, { what: 'its process is gone' });
  await h.fails(...h.dialect.look(sessionId), 'SESSION_NOT_FOUND');
  expect((await h.ok(...h.dialect.listMachine())).sessions).toMatchObject([{ sessionId }]);

  await h.say(sessionId, 'second');
  await held.arrived;
  expect(h.model.requestsFor(second)[0]?.userTexts).toEqual(['first', 'second']);
  expect(await h.look(sessionId)).toMatchObject({ status: 'running' });
  held.release();
  await eventually(isForgotten, { what: 'the session is forgotten again' });
});
