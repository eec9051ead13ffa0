/** Someone who answers Claude's requests: the demo itself, or the person at the terminal. */

import { askYesNo, type Terminal } from '../terminal/terminal.ts';
import type { Answer } from '../../schema/commands.ts';
import type { Action, Question } from '../rehearsal/server-client.ts';
import { TEST_COMMAND } from './demo-script.ts';

export interface Verdict {
  readonly decision: Answer['decision'];
  /** A description for the screen. */
  readonly words: string;
  readonly permissionOptions?: Readonly<Record<string, unknown>>;
}

export type Decide = (action: Action) => Promise<Verdict>;

/** Allows everything, the first choice of every question; the test command for the rest of the session. */
export function allowAll(pauseMs: number): Decide {
  return async (action) => {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const { questions, suggestions } = action;
    if (questions) return answered(questions.map(({ question, options }) => [question, options[0]?.label ?? 'Yes']));
    if (action.type === 'plan_review') return { decision: 'allow', words: 'approved' };
    if (suggestions && action.summary.includes(TEST_COMMAND)) {
      const updatedPermissions = suggestions.map((update) => ({ ...update, destination: 'session' }));
      return { decision: 'allow', words: 'allowed, for this session', permissionOptions: { updatedPermissions } };
    }
    return { decision: 'allow', words: 'allowed' };
  };
}

export function askPerson(terminal: Terminal): Decide {
  return async ({ questions }) => {
    if (questions) {
      const answers: [string, string][] = [];
      for (const question of questions) answers.push([question.question, await choose(terminal, question)]);
      return answered(answers);
    }
    const allowed = await askYesNo(terminal, '    Allow it?');
    return allowed ? { decision: 'allow', words: 'allowed' } : { decision: 'deny', words: 'denied' };
  };
}

function answered(answers: readonly (readonly [question: string, answer: string])[]): Verdict {
  return {
    decision: 'allow',
    words: answers.map(([, answer]) => answer).join(', '),
    permissionOptions: { answers: Object.fromEntries(answers) },
  };
}

/** By number, or as free text. */
async function choose(terminal: Terminal, { options }: Question): Promise<string> {
  const said = await terminal.ask(`    Your choice (1-${options.length}, or your own words): `);
  return options[Number(said) - 1]?.label ?? (said || (options[0]?.label ?? 'Yes'));
}
