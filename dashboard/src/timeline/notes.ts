import type { EventBody } from '../../../src/schema/events.ts';
import { plural } from '../text/words.ts';

export interface Note {
  readonly text: string;
  readonly isProblem: boolean;
}

/** Claude Code reports that matter to a person. */
const NOTICES: Readonly<Record<string, string>> = {
  compact_boundary: 'The conversation was compacted to make room',
  task_started: 'Task started',
  task_notification: 'Task ended',
  model_refusal_fallback: 'The model refused; another one continues',
  model_refusal_no_fallback: 'The model refused',
  informational: '',
  notification: '',
};

/** One line for what happened besides text and tools, or nothing for what only machines care about. */
export function noteOf(body: EventBody): Note | undefined {
  switch (body.kind) {
    case 'init': {
      const mode = body.permissionMode === 'default' ? [] : [`mode ${body.permissionMode}`];
      return plain(['Claude Code started', body.model, ...mode].join(' · '));
    }
    case 'retry':
      return body.loginRefused ? problem(body.summary) : plain(body.summary);
    case 'tool_refused':
      return problem(body.message);
    case 'error':
      return problem(body.message);
    case 'writes_lost':
      return problem('Claude Code could not save the whole transcript');
    case 'rewind':
      return body.dryRun ? undefined : plain(`${plural(body.files.length, 'file')} restored`);
    case 'apply':
      return plain(appliedWords(body));
    case 'discard':
      return plain(`Worktree discarded, ${body.outcome}`);
    case 'status':
      return body.permissionMode === undefined ? undefined : plain(`Mode is now ${body.permissionMode}`);
    case 'notice': {
      const words = NOTICES[body.name];
      if (words === undefined) return undefined;
      const told = [words, body.text ?? ''].filter((part) => part !== '').join(': ');
      return told === '' ? undefined : plain(told);
    }
    default:
      return undefined;
  }
}

function appliedWords({ outcome, branch, commit, checkout, by }: Extract<EventBody, { kind: 'apply' }>): string {
  if (outcome !== 'applied') return `Work: ${outcome.replaceAll('-', ' ')}`;
  const where = branch ?? checkout;
  return [
    'Applied',
    ...(where === undefined ? [] : [`to ${where}`]),
    ...(commit === undefined ? [] : [`as ${commit.slice(0, 7)}`]),
    ...(by === undefined ? [] : [`by ${by}`]),
  ].join(' ');
}

function plain(text: string): Note {
  return { text, isProblem: false };
}

function problem(text: string): Note {
  return { text, isProblem: true };
}
