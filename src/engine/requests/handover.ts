import type { Decision } from '../../driver/permission-ask.ts';
import type { OpenRequest } from './requests.ts';
import { summarizeTool } from '../conversation/tool-summary.ts';

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
