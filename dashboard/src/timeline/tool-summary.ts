import { oneLine, pathWithin } from '../text/words.ts';
import { list, text, type Fields } from './event-data.ts';

/** The one detail that distinguishes a call from others of the same tool. */
export function toolSummary(name: string, input: Fields, cwd: string): string {
  const path = text(input['file_path']) ?? text(input['notebook_path']) ?? text(input['path']);
  switch (name) {
    case 'Bash':
      return oneLine(text(input['command']) ?? '');
    case 'Grep':
    case 'Glob':
      return oneLine([text(input['pattern']), path && pathWithin(path, cwd)].filter(Boolean).join(' in '));
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
      if (path !== undefined) return pathWithin(path, cwd);
      const first = Object.values(input).find((value) => typeof value === 'string' && value !== '');
      return oneLine(text(first) ?? '');
    }
  }
}
