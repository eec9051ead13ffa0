/** What both toolsets report about the work of a call, below the field that holds it. */
export function workReturns(field: string): Record<string, string> {
  return below(
    field,
    Object.entries(FIELDS).filter(([name]) => !ONLY_IN_FULL.test(name)),
  );
}

/** The same, where `includeWork: "full"` can request all of it. */
export function fullWorkReturns(field: string): Record<string, string> {
  const files = 'The most changed files first, as many as fit; all of them with `includeWork: "full"`.';
  return below(field, Object.entries({ ...FIELDS, files }));
}

function below(field: string, entries: readonly (readonly [string, string])[]): Record<string, string> {
  return Object.fromEntries(entries.map(([name, meaning]) => [`${field}.${name}`, meaning]));
}

const ONLY_IN_FULL = /^(commands(\[|$)|files\[\]\.isBinary$)/;

const FIELDS: Readonly<Record<string, string>> = {
  filesChanged: 'Files that changed in the whole checkout; without git, those that the file tools changed.',
  insertions: 'Lines added.',
  deletions: 'Lines removed.',
  files: 'The most changed files first, as many as fit in 600 bytes of report.',
  'files[].path': 'Relative to the root of the checkout; absolute outside it.',
  'files[].insertions': 'Lines added.',
  'files[].deletions': 'Lines removed.',
  'files[].status': '`added`, `modified`, `deleted`, `renamed` or `type-changed`.',
  'files[].isBinary': 'With `includeWork: "full"`: there are no lines to count.',
  commandsRun: 'Commands that were run.',
  commandsFailed: 'Of which these failed.',
  commands: 'With `includeWork: "full"`: every command.',
  'commands[].command': 'As it was run.',
  'commands[].exitCode': 'Of a command that failed.',
  'commands[].failed': 'Whether it failed.',
  lastCheck: 'The last command that looks like a test, build, lint or type check.',
  'lastCheck.command': 'The part of the command that is the check.',
  'lastCheck.exitCode': 'As Claude Code saw it.',
  'lastCheck.afterLastEdit': '`false` if files were changed after it.',
  shared:
    '`true` if another session worked in the same checkout at the same time; some of the changes may be its work.',
  incomplete: 'Why git could not be used; the files are then those that the file tools reported.',
  problems: 'The last five tool calls that failed or were denied.',
  'problems[].tool': 'The tool.',
  'problems[].what': 'What it was called with, in one line.',
  'problems[].outcome': '`failed` or `denied`.',
  'problems[].by': 'Who denied it, as in `permissionDenials`.',
  'problems[].tail': 'The end of its output, or what Claude was told; at most 200 characters.',
};
