import type { Decision } from '../../driver/permission-ask.ts';
import type { OpenRequest, Source } from './requests.ts';
import { ranInstead } from './shown-request.ts';
import { cutAt, summarizeTool } from '../conversation/tool-summary.ts';

/** Claude Code (2.1.325) resumes with the call unanswered; this text replaces the answer. */
export function handoverText(lines: readonly string[]): string {
  return [
    'Your process was stopped while you waited for an answer. These decisions were made in the meantime:',
    ...lines.map((line) => `- ${line}`),
    'Continue with the task from here.',
  ].join('\n');
}

/** One line on a request that was settled while the session had no process. */
export function handoverLine({ ask, kind }: Pick<OpenRequest, 'ask' | 'kind'>, decision: Decision): string {
  const summary = summarizeTool(ask.toolName, ask.input);
  const call = summary === '' ? ask.toolName : `${ask.toolName} (${summary})`;
  const orphan =
    ask.agentId === undefined ? '' : ' A sub-agent asked for it and ended with the process: do it yourself now.';
  if (decision.behavior === 'deny') return `${call} was refused: ${decision.message}${orphan}`;
  if (kind === 'user_question') {
    const answers = decision.updatedInput?.['answers'] ?? decision.updatedInput ?? {};
    return `${call} was answered: ${JSON.stringify(answers)}${orphan}`;
  }
  const changed = decision.updatedInput ? ' It will run with the changes made by whoever allowed it.' : '';
  return `${call} was allowed. Make exactly the same call again, with the same input: it will run without asking again.${changed}${orphan}`;
}

/** What a result says about allowed calls that were not repeated. */
export function lapsedText(tools: readonly string[]): string {
  return `Allowed while the session was stopped, but not repeated: ${tools.join(', ')}. Ask for permission again if it is still needed.`;
}

const MAX_INPUT_CHARS = 4_000;

/**
 * What Claude should know about a call that was allowed: that its input was changed, and what was said with the answer.
 * The SDK's answer has no room for either.
 */
export function callNote(
  request: OpenRequest,
  message: string | undefined,
  decision: Decision,
  source: Source,
): string | undefined {
  if (decision.behavior === 'deny' || request.own) return undefined;
  const who = source === 'human' ? 'the user' : 'the caller';
  const ran = ranInstead(request, decision);
  const said = message?.trim() ?? '';
  const parts = [
    ...(ran
      ? [`${who} changed its input before allowing it; it runs with ${cutAt(JSON.stringify(ran), MAX_INPUT_CHARS)}`]
      : []),
    ...(said === '' ? [] : [`${who} allowed it and says: ${said}`]),
  ];
  return parts.length === 0 ? undefined : `About your ${request.ask.toolName} call: ${parts.join('; ')}`;
}
