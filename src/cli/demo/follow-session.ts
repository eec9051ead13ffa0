import type { Paint } from '../terminal/paint.ts';
import type { Decide } from './decide.ts';
import type { Action, CheckAnswer, ServerClient } from '../rehearsal/server-client.ts';
import type { Screen } from './screen.ts';
import { eventLines } from './tell-events.ts';

/** How long a poll may wait; events are drawn with at most this delay. */
const LOOK_MS = 250;

export interface Following {
  readonly client: ServerClient;
  readonly sessionId: string;
  readonly project: string;
  readonly screen: Screen;
  readonly paint: Paint;
  readonly decide: Decide;
  readonly signal: AbortSignal;
}

/** Draws a session until it is at rest, and has its requests answered. Resolves with its last state. */
export async function followSession(following: Following): Promise<CheckAnswer> {
  const { client, sessionId, project, screen, paint, signal } = following;
  let cursor: number | undefined;
  for (;;) {
    signal.throwIfAborted();
    await client.call('claude_code_check', { action: 'wait', sessionId, waitMs: LOOK_MS });
    const state = await client.call('claude_code_check', {
      action: 'poll',
      sessionId,
      ...(cursor !== undefined && { cursor }),
    });
    cursor = state.nextCursor;
    for (const line of eventLines(state, project, paint)) screen.line(line);
    for (const action of state.actions ?? []) await answer(action, following);
    if (state.status !== 'running' && state.status !== 'waiting_permission') {
      screen.now('');
      return state;
    }
    screen.now(state.activity ?? 'working');
  }
}

async function answer(action: Action, { client, sessionId, screen, paint, decide, signal }: Following): Promise<void> {
  for (const line of askedLines(action, paint)) screen.line(line);
  // The user types where the status line would be drawn.
  screen.now('');
  const { decision, words, permissionOptions } = await decide(action);
  signal.throwIfAborted();
  await client.call('claude_code_check', {
    action: 'respond_permission',
    sessionId,
    requestId: action.requestId,
    decision,
    ...(permissionOptions && { permissionOptions }),
  });
  screen.line(`    ${decision === 'allow' ? paint.green(`✓ ${words}`) : paint.red(`✗ ${words}`)}`);
}

function askedLines({ type, toolName, plan, questions = [] }: Action, paint: Paint): string[] {
  const heading = (words: string): string => `  ${paint.yellow('?')} ${paint.bold(words)}`;
  switch (type) {
    case 'user_question':
      return questions.flatMap(({ question, options }) => [
        heading(`Claude asks: ${question}`),
        ...options.map(({ label, description = '' }, index) => `    ${index + 1}. ${label}  ${paint.dim(description)}`),
      ]);
    case 'plan_review':
      return [heading('Claude has a plan'), ...(plan ?? '').split('\n').map((line) => `    ${line}`)];
    case 'permission':
      return [heading(`Claude asks for permission: ${toolName}`)];
  }
}
