/** What Claude asks people besides permissions: plans and questions. */

import { tool, type MessageReply } from '../../src/scripted-model/reply.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';

const PLAN_FILE = /\S+\/plans\/\S+?\.md/;

/** Claude writes its plan to the file that the plan mode reminder names. */
export function writesPlan(plan: string): (request: ModelRequest) => MessageReply {
  return ({ reminders }) => {
    const [file] = PLAN_FILE.exec(reminders.join('\n')) ?? [];
    if (file === undefined) throw new Error('No reminder names a plan file');
    return tool('Write', { file_path: file, content: plan });
  };
}

export const COLOUR = {
  question: 'Which colour?',
  header: 'Colour',
  multiSelect: false,
  options: [
    { label: 'Red', description: 'like a rose' },
    { label: 'Blue', description: 'like the sea' },
  ],
};

export const EXTRAS = {
  question: 'Which extras?',
  header: 'Extras',
  multiSelect: true,
  options: [
    { label: 'Wheels', description: 'four' },
    { label: 'Roof', description: 'one' },
    { label: 'Doors', description: 'two' },
  ],
};

export const asks = (...questions: readonly object[]): MessageReply => tool('AskUserQuestion', { questions });
