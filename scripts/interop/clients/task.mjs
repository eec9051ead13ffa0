// The task every client is driven through: start, wait, an approval, a question, the result.
// Reads its configuration from INTEROP, writes one line of JSON with the results.
import { setTimeout as sleep } from 'node:timers/promises';

export const { server, project, prompt } = JSON.parse(process.env.INTEROP);

/**
 * @param call (toolName, args) => the tool's JSON object
 * @param isPersonThere the client shows forms and a person answers them: the caller leaves requests to them
 */
export async function runTask(call, isPersonThere = false) {
  const seen = { calls: 0 };
  const told = async (tool, args) => {
    seen.calls++;
    return call(tool, args);
  };
  let state = await told('claude_code', { prompt, cwd: project, waitMs: 20_000 });
  const { sessionId } = state;
  for (let round = 0; round < 20 && !['idle', 'error', 'cancelled'].includes(state.status); round++) {
    const [action] = state.actions ?? [];
    if (action && isPersonThere) await sleep(state.pollInterval);
    state =
      action && !isPersonThere
        ? await answer(told, sessionId, action)
        : await told('claude_code_check', { action: 'wait', sessionId, waitMs: 20_000 });
  }
  report({ ...seen, status: state.status, result: state.result?.result });
}

async function answer(told, sessionId, action) {
  const answers =
    action.type === 'user_question'
      ? { permissionOptions: { answers: { [action.questions[0].question]: action.questions[0].options[0].label } } }
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
