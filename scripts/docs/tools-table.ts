/** Tables of the tools of a toolset. */

import type { Tool } from '../../src/mcp/define-tool.ts';
import { parametersOf } from './documented-tool.ts';
import { markdownTable } from './markdown-table.ts';
import { isTopLevel } from './reference-page.ts';

/** For a reader who wants to know what there is. */
export function toolNames(tools: readonly Tool[]): string {
  return markdownTable(
    ['Tool', 'What it does'],
    tools.map(({ name, title }) => [`\`${name}\``, title]),
  );
}

export function toolsTable(tools: readonly Tool[]): string {
  const rows = tools.map((tool) => {
    const parameters = parametersOf(tool).filter(isTopLevel);
    const listed = (required: boolean): string =>
      parameters
        .filter((parameter) => parameter.required === required)
        .map(({ path }) => `\`${path}\``)
        .join(', ');
    return [`\`${tool.name}\``, tool.title, listed(true) || 'none', listed(false) || 'none'];
  });
  return markdownTable(['Tool', 'What it does', 'Required', 'Optional'], rows);
}
