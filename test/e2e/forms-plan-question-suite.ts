/** What a person sees of a plan or a question, and the effect of their answer. */

import { expect, it } from 'vitest';
import { reply } from '../../src/scripted-model/reply.ts';
import type { FormAnswer } from '../harness/connect-client.ts';
import { asks, COLOUR, EXTRAS } from './asked-of-people.ts';
import { accept, cancel, choicesOf, decline, type Asked, type SharedSession } from './forms-support.ts';

const PLAN = '# The plan\n1. Look\n2. Leap';

/** Shows a plan to a person who gives this answer; `told` is what Claude learns of it. */
async function plan(session: SharedSession, answer: FormAnswer): Promise<Asked & { told: string }> {
  const replies = [reply().text(PLAN).tool('ExitPlanMode')];
  const asked = await session.ask(() => answer, { replies, permissionMode: 'plan' });
  await asked.h.waitUntilRest(asked.sessionId);
  return { ...asked, told: asked.h.model.requestsFor(asked.script).at(-1)!.toolResults[0]!.text };
}

async function ask(session: SharedSession, answer: FormAnswer): Promise<Asked & { told: () => string }> {
  const asked = await session.ask(() => answer, { replies: [asks(COLOUR, EXTRAS)], permissionMode: 'default' });
  return { ...asked, told: () => asked.h.model.requestsFor(asked.script).at(-1)!.toolResults[0]!.text };
}

/** Plans and questions reach the person, and their answers reach the session. */
export function planAndQuestionForms(session: SharedSession): void {
  it('shows a plan, and an approval starts the work', async () => {
    const { h, sessionId, forms, outcomes } = await plan(session, accept({ decision: 'Approve and start the work' }));
    expect(forms()).toHaveLength(1);
    expect(forms()[0]!.message).toContain('│ # The plan\n│ 1. Look\n│ 2. Leap');
    expect(choicesOf(forms()[0]!)).toEqual(['Approve and start the work', 'Ask for changes']);
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human', toolName: 'ExitPlanMode' }]);
    const { sessions } = await h.ok('claude_code_session', { action: 'get', sessionId });
    expect(sessions).toMatchObject([{ permissionMode: 'default' }]);
  });

  it('shows questions with their options, and accepts one or several', async () => {
    const { h, sessionId, forms, outcomes, told } = await ask(
      session,
      accept({ answer_1: 'Blue', answer_2: ['Wheels', 'Doors'] }),
    );
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expect(forms()[0]!.message).toContain('1. Which colour?\n  – Red: like a rose\n  – Blue: like the sea\n2. Which');
    expect(forms()[0]!.requestedSchema).toMatchObject({
      properties: {
        answer_1: { type: 'string', title: 'Colour', enum: ['Red', 'Blue', 'Something else (write it below)'] },
        answer_1_other: { type: 'string' },
        answer_2: { type: 'array', items: { enum: expect.arrayContaining(['Wheels', 'Roof', 'Doors']) } },
      },
      required: ['answer_1', 'answer_2'],
    });
    expect(told()).toContain('"Which colour?"="Blue"');
    expect(told()).toContain('"Which extras?"="Wheels, Doors"');
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'human' }]);
  });
}

/** What other answers mean: the same for every client that can show the form. */
export function planAndQuestionAnswers(session: SharedSession): void {
  it('passes on a request to change the plan', async () => {
    const { outcomes, told } = await plan(
      session,
      accept({ decision: 'Ask for changes', changes: 'leap before you look' }),
    );
    expect(told).toContain('The user wants the plan changed: leap before you look');
    expect(await outcomes()).toMatchObject([{ decision: 'deny', source: 'human' }]);
  });

  it('treats a declined plan as refused', async () => {
    const { outcomes, told } = await plan(session, decline);
    expect(told).toContain('The user does not want this plan');
    expect(await outcomes()).toMatchObject([{ decision: 'deny', source: 'human' }]);
  });

  it('accepts a free-text answer to a question', async () => {
    const other = 'Something else (write it below)';
    const { h, sessionId, told } = await ask(
      session,
      accept({
        answer_1: other,
        answer_1_other: 'green as grass',
        answer_2: ['Roof', other],
        answer_2_other: 'a horn',
      }),
    );
    await h.waitUntilRest(sessionId);
    expect(told()).toContain('"Which colour?"="green as grass"');
    expect(told()).toContain('"Which extras?"="Roof, a horn"');
  });

  it('treats a declined question as unanswered', async () => {
    const { h, sessionId, told } = await ask(session, decline);
    await h.waitUntilRest(sessionId);
    expect(told()).toContain('The user does not want to answer this');
  });

  it.each([
    ['cancelled', cancel],
    ['incomplete', accept({ answer_1: 'Blue' })],
  ])('leaves a question whose form is %s to the caller', async (_, answer) => {
    const { h, sessionId, forms, outcomes, told } = await ask(session, answer);
    await h.allow(sessionId, { answers: { 'Which colour?': 'Red', 'Which extras?': ['Roof'] } });
    await h.waitUntilRest(sessionId);
    expect(forms()).toHaveLength(1);
    expect(told()).toContain('"Which colour?"="Red"');
    expect(await outcomes()).toMatchObject([{ decision: 'allow', source: 'caller' }]);
  });
}
