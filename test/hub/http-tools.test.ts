import type { Client } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { ROLES, type Role } from '../../src/engine/principal.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { ERAS } from '../harness/connect-client.ts';
import type { Json } from '../harness/json.ts';
import { openEngineHub } from './http-hub.ts';

type Outcome = 'ok' | 'PERMISSION_DENIED' | 'SESSION_NOT_FOUND';

/** What each role gets for a tool, on its own session and on that of another. */
const EXPECTED: Record<string, Record<Role, Outcome>> = {
  'start a session': { viewer: 'PERMISSION_DENIED', caller: 'ok', approver: 'PERMISSION_DENIED', admin: 'ok' },
  'poll another’s': { viewer: 'ok', caller: 'SESSION_NOT_FOUND', approver: 'ok', admin: 'ok' },
  'reply to another’s': {
    viewer: 'PERMISSION_DENIED',
    caller: 'SESSION_NOT_FOUND',
    approver: 'PERMISSION_DENIED',
    admin: 'ok',
  },
  'answer another’s request': {
    viewer: 'PERMISSION_DENIED',
    caller: 'SESSION_NOT_FOUND',
    approver: 'ok',
    admin: 'ok',
  },
  'cancel another’s': { viewer: 'PERMISSION_DENIED', caller: 'SESSION_NOT_FOUND', approver: 'ok', admin: 'ok' },
};

test.each(ERAS)('every tool: each role gets what it may, over a %s connection', { timeout: 120_000 }, async (era) => {
  const hub = await openEngineHub();
  const { model, place } = hub.world;
  const cwd = place.project;
  const owner = await hub.connect({ era, token: await hub.token('caller', { name: 'owner' }) });
  const answers: Record<string, Record<string, Outcome>> = {};
  for (const role of ROLES) {
    const client = await hub.connect({ era, token: await hub.token(role, { name: `a ${role}` }) });
    const note = (what: string, outcome: Outcome): void => {
      answers[what] = { ...answers[what], [role]: outcome };
    };
    for (const prompt of [`begin ${role}`, `rest ${role}`, `continue ${role}`]) model.on(prompt).reply(text('done'));
    const command = `touch ${role}.txt`;
    model.on(`ask ${role}`).reply(tool('Bash', { command, description: 'make' }), text('made'));
    const begin = { prompt: `begin ${role}`, cwd, waitMs: 20_000 };
    note('start a session', outcomeOf(await call(client, 'claude_code', begin)));
    const resting = await call(owner, 'claude_code', { prompt: `rest ${role}`, cwd, waitMs: 20_000 });
    const sessionId = String(resting.sessionId);
    note('poll another’s', outcomeOf(await call(client, 'claude_code_check', { action: 'poll', sessionId })));
    note(
      'reply to another’s',
      outcomeOf(await call(client, 'claude_code_reply', { sessionId, prompt: `continue ${role}` })),
    );
    const asking = await call(owner, 'claude_code', { prompt: `ask ${role}`, cwd, waitMs: 20_000 });
    const id = String(asking.sessionId);
    const [{ requestId }] = asking.actions as { requestId: string }[] as [{ requestId: string }];
    const respond = { action: 'respond_permission', sessionId: id, requestId, decision: 'allow' };
    note('answer another’s request', outcomeOf(await call(client, 'claude_code_check', respond)));
    note('cancel another’s', outcomeOf(await call(client, 'claude_code_session', { action: 'cancel', sessionId: id })));
    await client.close();
  }
  expect(answers).toEqual(EXPECTED);
  await owner.close();
});

async function call(client: Client, name: string, args: object): Promise<Json> {
  const result = await client.callTool({ name, arguments: { ...args } }, { timeout: 40_000 });
  const [content] = result.content as { text: string }[];
  return { ...(JSON.parse(content?.text ?? '{}') as object), isError: result.isError === true };
}

function outcomeOf(answer: Json): Outcome {
  if (answer.isError !== true) return 'ok';
  return (/\[(\w+)\]/.exec(String(answer.error))?.[1] ?? 'none') as Outcome;
}
