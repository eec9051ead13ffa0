import { oneLine, pathWithin } from '../text/words.ts';
import { list, text, type Fields } from './event-data.ts';

/** The one detail that distinguishes a call from others of the same tool. */
export function toolSummary(name: string, input: Fields, cwd: string): { words: string; isPath: boolean } {
  const path = pathOf(input);
  const isPath = path !== undefined && !OWN_WORDS.has(name);
  return { words: isPath ? pathWithin(path, cwd) : wordsOf(name, input, path && pathWithin(path, cwd)), isPath };
}

/** Tools that something else than a path says more about. */
const OWN_WORDS = new Set(['Bash', 'Grep', 'Glob', 'Agent', 'Task', 'TodoWrite', 'AskUserQuestion', 'ExitPlanMode']);

function pathOf(input: Fields): string | undefined {
  return text(input['file_path']) ?? text(input['notebook_path']) ?? text(input['path']);
}

function wordsOf(name: string, input: Fields, path: string | undefined): string {
  switch (name) {
    case 'Bash':
      return oneLine(text(input['command']) ?? '');
    case 'Grep':
    case 'Glob':
      return oneLine([text(input['pattern']), path].filter(Boolean).join(' in '));
    case 'Agent':
    case 'Task':
      return oneLine(text(input['description']) ?? text(input['prompt']) ?? '');
    case 'TodoWrite':
      return `${list(input['todos']).length} items`;
    case 'AskUserQuestion':
      return oneLine(
        list(input['questions'])
          .map((one) => text((one as Fields)['question']) ?? '')
          .join(' '),
      );
    case 'ExitPlanMode':
      return 'plan';
    default: {
      const first = Object.values(input).find((value) => typeof value === 'string' && value !== '');
      return oneLine(text(first) ?? '');
    }
  }
}
