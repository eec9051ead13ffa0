import type { PermissionAsk } from '../../driver/permission-ask.ts';
import { oneLine, tellingField } from '../../engine/tool-summary.ts';
import { shortDiff } from './short-diff.ts';
import { barred, field, visibleText } from './visible-text.ts';

const TELLING_CHARS = 2_000;
const OTHER_CHARS = 300;
const MAX_FIELDS = 20;

/** The fields of tools that change a file, which are shown as a diff. */
const CHANGES: Record<string, { before?: string; after: string }> = {
  Edit: { before: 'old_string', after: 'new_string' },
  Write: { after: 'content' },
  NotebookEdit: { after: 'new_source' },
};

/** All that a tool would be called with: what tells most first, a change of a file as a diff, long values cut. */
export function toolDetails({ toolName, input }: Pick<PermissionAsk, 'toolName' | 'input'>): string {
  const change = changeOf(toolName, input);
  const telling = tellingField(toolName);
  const rest = Object.keys(input).filter((name) => name !== telling && !change?.fields.includes(name));
  const names = telling !== undefined && telling in input ? [telling, ...rest] : rest;
  const lines = names
    .slice(0, MAX_FIELDS)
    .map((name) => field(oneLine(name, 60), shown(input[name], name === telling ? TELLING_CHARS : OTHER_CHARS)));
  if (names.length > MAX_FIELDS) lines.push(`⟨${names.length - MAX_FIELDS} fields not shown⟩`);
  if (change) lines.push(`change:\n${barred(change.diff)}`);
  return lines.join('\n');
}

function shown(value: unknown, maxChars: number): string {
  return visibleText(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), maxChars);
}

function changeOf(toolName: string, input: Record<string, unknown>): { diff: string; fields: string[] } | undefined {
  const change = Object.hasOwn(CHANGES, toolName) ? CHANGES[toolName] : undefined;
  if (!change) return undefined;
  const before = change.before === undefined ? '' : input[change.before];
  const after = input[change.after];
  if (typeof before !== 'string' || typeof after !== 'string') return undefined;
  return {
    diff: shortDiff(before, after),
    fields: change.before === undefined ? [change.after] : [change.before, change.after],
  };
}
