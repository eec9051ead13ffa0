/** A GitHub-flavoured Markdown table. */
export function markdownTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [heading, heading.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.map(asCell).join(' | ')} |`).join('\n') + '\n';
}

function asCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
