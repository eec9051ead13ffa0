/**
 * The task of a client over HTTP: a turn with an approval, a turn that a hub restart cuts off while the client waits
 * for it, and a last one, with a question, in the session that the hub has restored.
 */

import type { Gate, MessageReply } from '../../src/scripted-model/reply.ts';
import { gate, text, tool } from '../../src/scripted-model/reply.ts';
import type { ModelRequest, ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { stateIn, type OuterRun, type State, askColour } from './task.ts';

/** Also in `clients/task.mjs`, for clients driven by a program. */
export const TURNS = ['interop first turn', 'interop cut off turn', 'interop last turn'] as const;
export const HTTP_DONE = 'The task over HTTP is done:';

/** The model reaches the gate while the client's second call is in progress. */
export function scriptHttpTask(model: ScriptedModel): Gate {
  const [first, cutOff, last] = TURNS;
  const cut = gate(text('nobody hears this'));
  model
    .on(new RegExp(`^${first}$`))
    .reply(tool('Bash', { command: 'echo hello > interop.txt', description: 'write a file' }), text('first turn done'));
  // Some clients repeat the call on their own when the hub is back.
  model
    .on(new RegExp(`^${cutOff}$`))
    .reply(cut)
    .always(text('second turn done'));
  model
    .on(new RegExp(`^${last}$`))
    .reply(askColour(), (request) => text(`interop done: ${request.toolResults[0]?.text ?? ''}`));
  return cut;
}

export interface HttpRun extends OuterRun {
  /** What the client told its model about the call that was cut off. */
  told: string;
}

/**
 * The model of an agent that goes through the three turns, and polls the session after a failed call.
 * It waits until the hub is back.
 */
export function scriptHttpCaller(model: ScriptedModel, project: string, restarted: Promise<void>): HttpRun {
  const run: HttpRun = { prompt: 'drive the task over HTTP to its end', calls: [], told: '' };
  let prefix = '';
  let sessionId = '';
  let turn = 0;
  const call = (name: string, args: Record<string, unknown>): MessageReply => {
    run.calls.push(`${name} ${JSON.stringify(args)}`);
    return tool(`${prefix}${name}`, args);
  };
  const next = (): MessageReply => call('claude_code_reply', { sessionId, prompt: TURNS[++turn], waitMs: 40_000 });
  const step = (request: ModelRequest): MessageReply | Gate => {
    const said = request.toolResults[0]?.text ?? '';
    const state = parsed(said);
    sessionId = state.sessionId ?? sessionId;
    const [action] = state.actions ?? [];
    if (action) return call('claude_code_check', answerTo(action, sessionId));
    if (state.status === 'running') return call('claude_code_check', { action: 'wait', sessionId, waitMs: 40_000 });
    if (state.status === undefined && run.told === '') {
      run.told = said;
      const poll = gate(call('claude_code_check', { action: 'poll', sessionId }));
      void restarted.then(() => poll.release());
      return poll;
    }
    if (state.status === undefined || turn === TURNS.length - 1)
      return text(`${HTTP_DONE} ${state.result?.result ?? said}`);
    return next();
  };
  model.on(run.prompt).always((request) => {
    if (request.toolResults.length > 0) return step(request);
    if (request.tools.length === 0) return text('A task');
    const own = request.tools.find((name) => name.endsWith('claude_code'));
    // Claude Code does not wait for a server before it asks its model.
    prefix = own?.slice(0, -'claude_code'.length) ?? 'mcp__claude-code__';
    return call('claude_code', { prompt: TURNS[0], cwd: project, waitMs: 40_000 });
  });
  return run;
}

function answerTo(action: NonNullable<State['actions']>[number], sessionId: string): Record<string, unknown> {
  const [question] = action.input.questions ?? [];
  const answers = question && { [question.question]: question.options[0]?.label ?? '' };
  return {
    action: 'respond_permission',
    sessionId,
    requestId: action.requestId,
    decision: 'allow',
    waitMs: 40_000,
    ...(answers && { permissionOptions: { answers } }),
  };
}

/** A protocol error is a text, not an object. */
function parsed(said: string): State {
  try {
    return stateIn(said);
  } catch {
    return {};
  }
}
