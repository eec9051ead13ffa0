import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../src/config/command-line.ts';
import { SettingsError } from '../../src/config/bad-input.ts';

it.each<[argv: string[], command: string, flags: Record<string, string>, rest: string[]]>([
  [[], 'serve', {}, []],
  [['serve'], 'serve', {}, []],
  [['', '--'], 'serve', {}, []],
  [['--toolset', 'explicit'], 'serve', { toolset: 'explicit' }, []],
  [['--allow-bypass', 'serve', '--prewarm=off'], 'serve', { allowBypass: 'on', prewarm: 'off' }, []],
  [['--max-sessions', '-1'], 'serve', { maxSessions: '-1' }, []],
  [['--resume-secret=--x=y'], 'serve', { resumeSecret: '--x=y' }, []],
  [['doctor', '--json'], 'doctor', {}, ['--json']],
  [
    ['audit', '--session', 'abc', '--last=5', '--audit-log', '/x'],
    'audit',
    { auditLog: '/x' },
    ['--session', 'abc', '--last=5'],
  ],
  [
    ['--log-level', 'debug', 'install', 'codex', '--print', ''],
    'install',
    { logLevel: 'debug' },
    ['codex', '--print', ''],
  ],
  [['uninstall', '--', '--toolset', 'x'], 'uninstall', {}, ['--', '--toolset', 'x']],
  [['--help'], 'help', {}, []],
  [['-h'], 'help', {}, []],
  [['doctor', '--help'], 'help', {}, []],
  [['--version'], 'version', {}, []],
  [['-V'], 'version', {}, []],
])('%j is %s', (argv, command, flags, rest) => {
  const line = parseCommandLine(argv);
  expect(line.command).toBe(command);
  expect(Object.fromEntries(line.flags)).toEqual(flags);
  expect(line.rest).toEqual(rest);
});

describe('mistakes', () => {
  it.each<[argv: string[], message: string]>([
    [['--tolset', 'x'], 'Unknown flag "--tolset"; did you mean --toolset?'],
    [['--max_sessions=3'], 'Unknown flag "--max_sessions"; did you mean --max-sessions?'],
    [['--maxSessions'], 'Unknown flag "--maxSessions"; did you mean --max-sessions?'],
    [['--hlep'], 'Unknown flag "--hlep"; did you mean --help?'],
    [['--xyzzy'], 'Unknown flag "--xyzzy"; see claude-code-mcp --help.'],
    [['-x'], 'Unknown flag "-x"; see claude-code-mcp --help.'],
    [['--toString'], 'Unknown flag "--toString"; see claude-code-mcp --help.'],
    [['docter'], 'Unknown command "docter"; did you mean doctor?'],
    [['constructor'], 'Unknown command "constructor"; see claude-code-mcp --help.'],
    [['serve', 'now'], 'Unexpected argument "now"; see claude-code-mcp --help.'],
    [['--toolset'], '--toolset needs a value; it takes compact or explicit.'],
    [['--toolset', '--prewarm'], '--toolset needs a value; it takes compact or explicit.'],
    [['--line\nbreak'], 'Unknown flag "--line\\nbreak"; see claude-code-mcp --help.'],
  ])('%j', (argv, message) => {
    expect(() => parseCommandLine(argv)).toThrow(new SettingsError(message));
  });
});
