/** A caller that knows only the server's instructions, and makes the calls written there. */

import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';

export interface CallMade {
  readonly tool: string;
  readonly answer: Json;
  /** The size of the answer, as a client gets it. */
  readonly bytes: number;
}

export interface Answer {
  readonly decision: 'allow' | 'deny';
  readonly answers?: Readonly<Record<string, string>>;
  readonly message?: string;
}

interface Template {
  readonly tool: string;
  /** The caller fills in those without a value. */
  readonly args: Readonly<Record<string, unknown>>;
}

/** The call after these words in the instructions, such as `claude_code {prompt, cwd, waitMs: 45000}`. */
function templateAfter(words: string, instructions: string): Template {
  const from = instructions.indexOf(words);
  const [, tool, list] = /(\w+) \{([^}]*)\}/.exec(instructions.slice(from)) ?? [];
  if (from < 0 || tool === undefined || list === undefined)
    throw new Error(`The instructions have no call after: ${words}`);
  const args = list.split(',').map((item) => {
    const [name = '', value] = item.split(':').map((part) => part.trim());
    return [name, value === undefined ? undefined : (JSON.parse(value) as unknown)] as const;
  });
  return { tool, args: Object.fromEntries(args) };
}

export function textCaller(h: Harness): {
  run(prompt: string, decide: (request: Json) => Answer): Promise<{ calls: CallMade[]; last: Json }>;
} {
  const instructions = h.client.getInstructions() ?? '';
  const [waiting, listName] =
    h.toolset === 'compact' ? ['waiting_permission', 'actions'] : ['waiting_for_input', 'pendingInputs'];
  const start = templateAfter('Start:', instructions);
  const respond = templateAfter(`Status "${waiting}":`, instructions);
  const wait = templateAfter('Status "running":', instructions);

  return {
    async run(prompt, decide) {
      const calls: CallMade[] = [];
      const make = async ({ tool, args }: Template, given: Readonly<Record<string, unknown>>): Promise<Json> => {
        const filled = Object.fromEntries(Object.entries(args).map(([name, value]) => [name, value ?? given[name]]));
        const extra = Object.fromEntries(
          Object.entries(given)
            .filter(([name]) => name.startsWith('+'))
            .map(([name, value]) => [name.slice(1), value]),
        );
        const answer = await h.ok(tool, { ...filled, ...extra }, { timeout: 90_000 });
        calls.push({ tool, answer, bytes: Buffer.byteLength(JSON.stringify(answer)) });
        return answer;
      };
      let state = await make(start, { prompt, cwd: h.project, workingDirectory: h.project });
      for (;;) {
        const { sessionId, status } = state;
        if (status === waiting) {
          const [request] = state[listName];
          const { decision, answers, message } = decide(request);
          state = await make(respond, {
            sessionId,
            decision,
            requestId: request.requestId,
            inputId: request.inputId,
            ...(request.type === 'user_question' &&
              (h.toolset === 'compact' ? { '+permissionOptions': { answers } } : { '+answers': answers })),
            ...(message !== undefined &&
              (h.toolset === 'compact' ? { '+denyMessage': message } : { '+reason': message })),
          });
        } else if (status === 'running') state = await make(wait, { sessionId });
        else return { calls, last: state };
      }
    },
  };
}
