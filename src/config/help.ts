import { COMMANDS } from './command-line.ts';
import { flagOf, HUB_ONLY_KEYS, rowOf, SETTING_KEYS, variableOf, type SettingKey } from './settings-table.ts';

const WIDTH = 80;
const serverKeys = SETTING_KEYS.filter((key) => !HUB_ONLY_KEYS.includes(key));

/** What `claude-code-mcp --help` prints. */
export function helpText(): string {
  return [
    'claude-code-mcp: an MCP server that drives Claude Code.',
    '',
    'Usage: claude-code-mcp [command] [options]',
    '',
    'Commands:',
    ...Object.entries(COMMANDS).map(([name, meaning]) => `  ${name.padEnd(11)}${meaning}`),
    '',
    'Options:',
    '  --help     show this text; after a command, its own help',
    '  --version  show the version',
    ...serverKeys.flatMap(optionLines),
    '',
    'Options of the hub:',
    ...HUB_ONLY_KEYS.flatMap(optionLines),
    '',
    ...wrap(
      'Every option is also a variable: --max-sessions 4 is CLAUDE_CODE_MCP_MAX_SESSIONS=4. ' +
        'Flags take precedence over variables, prefixed variables over bare ones; an empty value counts as not set. ' +
        'Turn a switch off with =off.',
      '',
    ),
    '',
  ].join('\n');
}

export function optionLines(key: SettingKey): string[] {
  const { kind, meaning, alsoReads = [] } = rowOf(key);
  const value = kind.isSwitch ? '' : ` <${kind.placeholder}>`;
  const also = alsoReads.length === 0 ? '' : ` Also read from ${alsoReads.join(', ')}.`;
  return [`  ${flagOf(key)}${value}`, ...wrap(`${meaning} Default: ${defaultInWords(key)}.${also}`, '      ')];
}

/** The table of settings in docs/settings.md. */
export function settingsMarkdownTable(): string {
  return markdownTable(serverKeys);
}

/** The table of what only the hub uses. */
export function hubSettingsMarkdownTable(): string {
  return markdownTable(HUB_ONLY_KEYS);
}

function markdownTable(keys: readonly SettingKey[]): string {
  const rows = keys.map((key) => {
    const { kind, meaning, alsoReads = [] } = rowOf(key);
    const variables = [variableOf(key), ...alsoReads].map(asCode).join('<br>or ');
    const flag = kind.isSwitch ? flagOf(key) : `${flagOf(key)} <${kind.placeholder}>`;
    return [variables, asCode(flag), asCell(shownDefault(key)), asCell(meaning)];
  });
  const heading = ['Variable', 'Flag', 'Default', 'Meaning'];
  return [heading, heading.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n') + '\n';
}

function defaultInWords(key: SettingKey): string {
  const { kind, default: value, defaultInWords: words, hubDefault } = rowOf(key);
  const usual = words ?? kind.format(value, { platform: 'linux' });
  return hubDefault === undefined ? usual : `${usual} (in the hub ${kind.format(hubDefault, { platform: 'linux' })})`;
}

function shownDefault(key: SettingKey): string {
  return rowOf(key).defaultInWords ?? asCode(defaultInWords(key));
}

function asCode(text: string): string {
  return `\`${asCell(text)}\``;
}

function asCell(text: string): string {
  return text.replaceAll('|', '\\|');
}

export function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    const joined = line.trim() === '' ? indent + word : `${line} ${word}`;
    if (joined.length > WIDTH && line.trim() !== '') {
      lines.push(line);
      line = indent + word;
    } else line = joined;
  }
  return [...lines, line];
}
