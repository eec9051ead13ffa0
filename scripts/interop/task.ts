import type { ModelRequest, ScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { text, tool, type MessageReply } from '../../src/scripted-model/reply.ts';

export const TASK_PROMPT = 'interop task';
export const APPROVAL_PROMPT = 'approval task';
export const OUTER_TEXT = 'The task is done:';

/** What Claude does inside the server: a command that needs approval, a question, an answer. */
export function scriptInnerTask(model: ScriptedModel): void {
  model
    .on(new RegExp(`^${TASK_PROMPT}$`))
    .reply(tool('Bash', { command: 'echo hello > interop.txt', description: 'write a file' }), askColour(), (request) =>
      text(`interop done: ${request.toolResults[0]?.text ?? ''}`),
    );
  // The same, approved in advance and without a question, for a client that cannot keep a server across several calls.
  model
    .on('interop single call')
    .reply(
      tool('Bash', { command: 'echo hello > interop.txt', description: 'write a file' }),
      text('interop done: at once'),
    );
}

/** A shorter task, to count the calls that a caller needs: one approval and the answer. */
export function scriptApprovalTask(model: ScriptedModel): void {
  model
    .on(new RegExp(`^${APPROVAL_PROMPT}$`))
    .reply(
      tool('Bash', { command: 'echo hello > approved.txt', description: 'write a file' }),
      text('interop done: approved'),
    );
}

export interface State {
  sessionId?: string;
  status?: string;
  actions?: {
    type: string;
    requestId: string;
    input: { questions?: { question: string; options: { label: string }[] }[] };
  }[];
  result?: { result: string };
}

export interface OuterRun {
  prompt: string;
  calls: string[];
}

/** The model of an agent that follows the server's instructions and nothing else. */
export function scriptOuterCaller(model: ScriptedModel, project: string, task: string): OuterRun {
  const run: OuterRun = { prompt: `drive the ${task} to its end`, calls: [] };
  let prefix = '';
  let sessionId = '';
  const call = (name: string, args: Record<string, unknown>): MessageReply => {
    run.calls.push(`${name} ${JSON.stringify(args)}`);
    return tool(`${prefix}${name}`, args);
  };
  const step = (request: ModelRequest): MessageReply => {
    const state = stateIn(request.toolResults[0]?.text ?? '');
    sessionId = state.sessionId ?? sessionId;
    const [action] = state.actions ?? [];
    if (action?.type === 'user_question') {
      const [question] = action.input.questions ?? [];
      const answers = question ? { [question.question]: question.options[0]?.label ?? '' } : {};
      return call('claude_code_check', {
        action: 'respond_permission',
        sessionId,
        requestId: action.requestId,
        decision: 'allow',
        permissionOptions: { answers },
      });
    }
    if (action) {
      return call('claude_code_check', {
        action: 'respond_permission',
        sessionId,
        requestId: action.requestId,
        decision: 'allow',
      });
    }
    if (state.status === 'running') return call('claude_code_check', { action: 'wait', sessionId, waitMs: 20_000 });
    return text(`${OUTER_TEXT} ${state.result?.result ?? JSON.stringify(state)}`);
  };
  const begin = (request: ModelRequest): MessageReply => {
    prefix =
      request.tools.find((name) => name.endsWith('claude_code'))?.slice(0, -'claude_code'.length) ??
      'mcp__claude-code__';
    return call('claude_code', { prompt: task, cwd: project, waitMs: 20_000 });
  };
  model
    .on(run.prompt)
    .always((request) =>
      request.toolResults.length === 0 ? (request.tools.length === 0 ? text('A task') : begin(request)) : step(request),
    );
  return run;
}

/** The JSON object in a tool result, whatever the client put around it. */
export function stateIn(result: string): State {
  const begin = result.indexOf('{');
  const end = result.lastIndexOf('}');
  return begin < 0 ? {} : (JSON.parse(result.slice(begin, end + 1)) as State);
}

/** A question for a person, or a model in their place. */
export function askColour(): ReturnType<typeof tool> {
  const options = [
    { label: 'Green', description: 'like leaves' },
    { label: 'Blue', description: 'like the sky' },
  ];
  return tool('AskUserQuestion', {
    questions: [{ question: 'Which colour?', header: 'Colour', multiSelect: false, options }],
  });
}
