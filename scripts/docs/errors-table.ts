/** Tables made from data of the program: error codes, and the commands that a rule may leave open. */

import { OPEN_COMMANDS } from '../../src/engine/rules/standing/prefixes.ts';
import { ERRORS } from '../../src/errors/errors.ts';
import { markdownTable } from './markdown-table.ts';

export function errorsTable(): string {
  const rows = Object.entries(ERRORS).map(([code, { meaning, remedy }]) => [`\`${code}\``, meaning, remedy]);
  return markdownTable(['Code', 'Meaning', 'What to do'], rows);
}

export function openCommandsTable(): string {
  const rows = OPEN_COMMANDS.map(({ words, flags = '', long = [], values = {}, attached = {}, digits, reason }) => {
    const letters = flags === '' ? [] : [`-${flags}`];
    const options = [...letters, ...(digits ? ['-<n>'] : []), ...long, ...Object.keys({ ...values, ...attached })];
    return [`\`${words.join(' ')} *\``, options.length === 0 ? '' : `\`${options.join(' ')}\``, reason];
  });
  return markdownTable(['Command', 'Options', 'Why it is harmless'], rows);
}
