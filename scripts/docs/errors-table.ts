/** Every error code, with what it says and what to do. */

import { ERRORS } from '../../src/errors/errors.ts';
import { markdownTable } from './markdown-table.ts';

export function errorsTable(): string {
  const rows = Object.entries(ERRORS).map(([code, { meaning, remedy }]) => [`\`${code}\``, meaning, remedy]);
  return markdownTable(['Code', 'Meaning', 'What to do'], rows);
}
