// The task every client is driven through: start, wait, an approval, a question, the result.
// Reads its configuration from INTEROP, writes one line of JSON with the results.
import { setTimeout as sleep } from 'node:timers/promises';

// `http`: the address of the hub and the headers that carry the token, for a client that is given no server to start.
export const { server, http, project, prompt } = JSON.parse(process.env.INTEROP);

// Also in `../http-task.ts`, for clients whose model is scripted.
const TURNS = ['interop first turn', 'interop cut off turn', 'interop last turn'];

/**
 * @param call (toolName, args) => the tool's JSON object
 * @param isPersonThere the client shows forms and a person answers them: the caller leaves requests to them
 * @param extras what else is to be reported at the end
 */
export async function runTask(call, isPersonThere = false, extras = () => ({})) {
  const seen = { calls: 0 };
  const told = async (tool, args) => {
    seen.calls++;
    return call(tool, args);
  };
  const finish = async (begun) => {
    let state = begun;
    for (let round = 0; round < 20 && !['idle', 'error', 'cancelled'].includes(state.status); round++) {
      const [action] = state.actions ?? [];
      if (action && isPersonThere) await sleep(state.pollInterval);
      state =
        action && !isPersonThere
          ? await answer(told, state.sessionId, action)
          : await told('claude_code_check', { action: 'wait', sessionId: state.sessionId, waitMs: 20_000 });
    }
    return state;
  };
  const task = http ? TURNS[0] : prompt;
  let state = await finish(await told('claude_code', { prompt: task, cwd: project, waitMs: 20_000 }));
  if (http) {
    const { sessionId } = state;
    const began = Date.now();
    seen.told = await told('claude_code_reply', { sessionId, prompt: TURNS[1], waitMs: 40_000 }).then(
      (answered) => answered.error ?? `not cut off: ${JSON.stringify(answered)}`,
      (error) => String(error?.message ?? error),
    );
    seen.cutMs = Date.now() - began;
    // Nobody answers while the old hub has gone and the new one has not come.
    let looked;
    while (looked === undefined && Date.now() - began < 60_000) {
      looked = await told('claude_code_check', { action: 'poll', sessionId }).catch(() => sleep(250));
    }
    seen.afterwards = looked?.status;
    // The session may have gone on without its hub.
    if (looked !== undefined) await finish(looked);
    state = await finish(await told('claude_code_reply', { sessionId, prompt: TURNS[2], waitMs: 20_000 }));
  }
  report({ ...seen, status: state.status, result: state.result?.result, ...extras() });
}

async function answer(told, sessionId, action) {
  const answers =
    action.type === 'user_question'
      ? {
          permissionOptions: {
            answers: { [action.input.questions[0].question]: action.input.questions[0].options[0].label },
          },
        }
      : {};
  return told('claude_code_check', {
    action: 'respond_permission',
    sessionId,
    requestId: action.requestId,
    decision: 'allow',
    ...answers,
  });
}

export function report(seen) {
  process.stdout.write(`\nINTEROP ${JSON.stringify(seen)}\n`);
}

/** The JSON object of a tool result in any of the shapes client libraries hand out. */
export function objectOf(result) {
  if (result?.structuredContent) return result.structuredContent;
  const content = result?.content ?? result;
  const text =
    typeof content === 'string'
      ? content
      : Array.isArray(content)
        ? (content.find((part) => part.type === 'text')?.text ?? content[0])
        : undefined;
  return typeof text === 'string' ? JSON.parse(text) : content;
}
