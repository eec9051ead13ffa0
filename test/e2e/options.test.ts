/** Every option that a caller may set reaches Claude Code: in its arguments, environment, input or model request. */

import { existsSync, readdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ADVANCED_OPTION_NAMES,
  COMMON_OPTION_NAMES,
  type SessionOptionName,
} from '../../src/schema/session-options.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import type { ModelRequest } from '../../src/scripted-model/scripted-model.ts';
import type { Json } from '../harness/json.ts';
import { openHarness, type Harness } from '../harness/open-harness.ts';
import { recordingClaude, type RecordedStart, type RecordingClaude } from '../harness/recording-claude.ts';

/** What was observed of a session that was started with a group of options. */
interface Seen {
  readonly start: RecordedStart;
  readonly initialize: Json;
  readonly message: Json;
  readonly request: ModelRequest;
  readonly answer: Json;
}

/** What exists only once the test has its home directory. */
interface Fixture {
  readonly claude: RecordingClaude;
  readonly plugin: string;
  readonly elsewhere: string;
  readonly debugFile: string;
}

interface Case {
  /** Or a function that returns the value. */
  readonly value: unknown;
  readonly check: (seen: Seen, fixture: Fixture) => void;
}

type Group = Partial<Record<SessionOptionName, Case>>;

const argument =
  (...expected: string[]) =>
  ({ start }: Seen): void =>
    expect(start.argv).toEqual(expect.arrayContaining(expected));
const initialize =
  (expected: object) =>
  (seen: Seen): void =>
    expect(seen.initialize).toMatchObject(expected);
const variable =
  (name: string, value: string) =>
  ({ start }: Seen): void =>
    expect(start.env).toMatchObject({ [name]: value });

const schema = { type: 'object', properties: { colour: { type: 'string' } }, required: ['colour'] };
const plainServer = { command: process.execPath, args: ['--version'] };
const helper = { description: 'helps out', prompt: 'You are the helper.', tools: ['Read'] };

/** Options of one group do not interfere with each other. */
const GROUPS: Readonly<Record<string, Group>> = {
  'what the model is and may spend': {
    pathToClaudeCodeExecutable: {
      value: ({ claude }: Fixture) => claude.path,
      check: ({ start }) => expect(start.argv).toContain('--input-format'),
    },
    cwd: {
      value: ({ elsewhere }: Fixture) => elsewhere,
      check: ({ start }, { elsewhere }) => expect(start.cwd).toBe(elsewhere),
    },
    model: { value: 'claude-opus-4-6', check: ({ request }) => expect(request.model).toBe('claude-opus-4-6') },
    fallbackModel: { value: 'claude-haiku-4-5', check: argument('--fallback-model=claude-haiku-4-5') },
    effort: {
      value: 'low',
      check: ({ request }) => expect(request.body).toMatchObject({ output_config: { effort: 'low' } }),
    },
    thinking: {
      value: { type: 'disabled' },
      check: ({ request }) => expect(request.body).toMatchObject({ thinking: { type: 'disabled' } }),
    },
    taskBudget: {
      value: { total: 50_000 },
      check: ({ request }) => expect(request.body).toMatchObject({ output_config: { task_budget: { total: 50_000 } } }),
    },
    betas: {
      value: ['context-1m-2025-08-07'],
      check: argument('--betas=context-1m-2025-08-07'),
    },
    systemPrompt: {
      value: 'You answer in rhymes.',
      check: ({ request }) => expect(request.system).toContain('You answer in rhymes.'),
    },
    tools: { value: ['Bash', 'Read'], check: ({ request }) => expect(request.tools).toEqual(['Bash', 'Read']) },
    maxTurns: { value: 7, check: argument('--max-turns=7') },
    maxBudgetUsd: { value: 2.5, check: argument('--max-budget-usd=2.5') },
    title: { value: 'A task with a title', check: initialize({ title: 'A task with a title' }) },
  },
  'what is loaded and allowed': {
    agents: { value: { helper }, check: initialize({ agents: { helper } }) },
    agent: {
      value: 'helper',
      check: (seen) => {
        argument('--agent=helper')(seen);
        expect(seen.request.system).toContain('You are the helper.');
      },
    },
    allowedTools: { value: ['Read', 'Bash(git diff *)'], check: argument('--allowedTools=Read,Bash(git diff *)') },
    disallowedTools: { value: ['WebFetch'], check: argument('--disallowedTools=WebFetch') },
    permissionMode: { value: 'acceptEdits', check: argument('--permission-mode=acceptEdits') },
    additionalDirectories: {
      value: ({ elsewhere }: Fixture) => [elsewhere],
      check: (seen, { elsewhere }) => argument(`--add-dir=${elsewhere}`)(seen),
    },
    mcpServers: {
      value: { colours: plainServer },
      check: argument('--mcp-config', JSON.stringify({ mcpServers: { colours: plainServer } })),
    },
    strictMcpConfig: { value: true, check: argument('--strict-mcp-config') },
    settingSources: { value: ['user', 'local'], check: argument('--setting-sources=user,local') },
    sandbox: {
      value: { enabled: false },
      check: argument('--settings', JSON.stringify({ cleanupPeriodDays: 3, sandbox: { enabled: false } })),
    },
    settings: {
      value: { cleanupPeriodDays: 3 },
      check: ({ start }) => expect(start.argv.at(-1)).toContain('"cleanupPeriodDays":3'),
    },
    toolAliases: { value: { Shell: 'Bash' }, check: initialize({ toolAliases: { Shell: 'Bash' } }) },
    persistSession: {
      value: false,
      check: (seen) => {
        argument('--no-session-persistence')(seen);
        expect(transcriptsOf(seen)).toEqual([]);
      },
    },
  },
  'what is reported': {
    debug: { value: true, check: argument('--debug') },
    env: {
      value: { COLOUR: 'green', GIVEN_TO_THE_SERVER: 'replaced' },
      check: (seen) => {
        variable('COLOUR', 'green')(seen);
        variable('GIVEN_TO_THE_SERVER', 'replaced')(seen);
        variable('ALSO_GIVEN_TO_THE_SERVER', 'kept')(seen);
      },
    },
    enableFileCheckpointing: { value: true, check: variable('CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING', 'true') },
    toolConfig: {
      value: { askUserQuestion: { previewFormat: 'html' } },
      check: variable('CLAUDE_CODE_QUESTION_PREVIEW_FORMAT', 'html'),
    },
    includePartialMessages: { value: true, check: argument('--include-partial-messages') },
    includeHookEvents: { value: true, check: argument('--include-hook-events') },
    agentProgressSummaries: { value: true, check: initialize({ agentProgressSummaries: true }) },
    forwardSubagentText: { value: true, check: initialize({ forwardSubagentText: true }) },
    promptSuggestions: { value: true, check: initialize({ promptSuggestions: true }) },
    planModeInstructions: { value: 'Draw it first.', check: initialize({ planModeInstructions: 'Draw it first.' }) },
    verbatimPrompts: { value: true, check: ({ message }) => expect(message).toMatchObject({ client_composed: true }) },
  },
  'what is brought along': {
    outputFormat: {
      value: { type: 'json_schema', schema },
      check: ({ request, answer }) => {
        expect(request.tools).toContain('StructuredOutput');
        expect(answer.result.structuredOutput).toEqual({ colour: 'red' });
      },
    },
    skills: { value: ['painting'], check: initialize({ skills: ['painting'] }) },
    plugins: {
      value: ({ plugin }: Fixture) => [{ type: 'local', path: plugin }],
      check: (seen, { plugin }) => initialize({ plugins: [{ type: 'local', path: plugin }] })(seen),
    },
    pluginDelivery: { value: 'initialize', check: argument('--await-initialize') },
    projectConfigRoot: {
      value: ({ elsewhere }: Fixture) => elsewhere,
      check: (seen, { elsewhere }) => argument(`--project-config-root=${elsewhere}`)(seen),
    },
    debugFile: {
      value: ({ debugFile }: Fixture) => debugFile,
      check: (seen, { debugFile }) => {
        argument(`--debug-file=${debugFile}`)(seen);
        expect(existsSync(debugFile)).toBe(true);
      },
    },
  },
};

/** Handled by the server itself, and not passed to Claude Code. */
const SERVER_OPTIONS: readonly SessionOptionName[] = [
  'permissionRequestTimeoutMs',
  'sessionInitTimeoutMs',
  'workspace',
];

const ALL_OPTIONS: readonly SessionOptionName[] = [...COMMON_OPTION_NAMES, ...ADVANCED_OPTION_NAMES];

let h: Harness;
let fixture: Fixture;
const seenBy = new Map<string, Promise<Seen>>();

beforeAll(async () => {
  h = await openHarness({ env: { GIVEN_TO_THE_SERVER: 'first', ALSO_GIVEN_TO_THE_SERVER: 'kept' } });
  const [plugin, elsewhere] = [join(h.home, 'plugin'), join(h.home, 'elsewhere')];
  fixture = { claude: await recordingClaude(h.home), plugin, elsewhere, debugFile: join(h.home, 'debug.log') };
  await mkdir(join(plugin, '.claude-plugin'), { recursive: true });
  await mkdir(elsewhere);
  await writeFile(join(plugin, '.claude-plugin', 'plugin.json'), '{"name":"plugged","version":"1.0.0"}');
});

afterAll(() => h.close(), 40_000);

describe.each(Object.entries(GROUPS))('%s', (name, group) => {
  it.each(Object.entries(group))('%s reaches Claude Code', async (_option, { check }) => {
    check(await seenWith(name, group), fixture);
  });
});

it('every option has a test here, or is handled by the server', () => {
  const tested = [...Object.values(GROUPS).flatMap((group) => Object.keys(group)), ...SERVER_OPTIONS];
  expect(tested.toSorted()).toEqual([...ALL_OPTIONS].sort());
});

/** One start per group, by whichever of its tests runs first. */
function seenWith(name: string, group: Group): Promise<Seen> {
  const known = seenBy.get(name) ?? startWith(`look at ${name}`, group);
  seenBy.set(name, known);
  return known;
}

async function startWith(prompt: string, group: Group): Promise<Seen> {
  const { claude } = fixture;
  const options = Object.fromEntries(Object.entries(group).map(([option, { value }]) => [option, valueIn(value)]));
  const script = h.model.on(prompt);
  if ('outputFormat' in group) script.reply(tool('StructuredOutput', { colour: 'red' }));
  else script.reply(text('looked'));
  const before = claude.starts().length;
  const answer = await h.ok('claude_code', {
    prompt,
    cwd: h.project,
    pathToClaudeCodeExecutable: claude.path,
    waitMs: 40_000,
    ...options,
  });
  // There may be a start that only asked for the version.
  const start = claude
    .starts()
    .slice(before)
    .find((one) => one.input().length > 0);
  const [request] = h.model.requestsFor(script);
  if (start === undefined || request === undefined) throw new Error(`Nothing was started: ${JSON.stringify(answer)}`);
  const [initialized, message] = start.input();
  return { start, initialize: initialized.request, message, request, answer };
}

function valueIn(value: unknown): unknown {
  return typeof value === 'function' ? (value as (fixture: Fixture) => unknown)(fixture) : value;
}

function transcriptsOf({ answer }: Seen): string[] {
  const files = readdirSync(h.configDir, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.jsonl'),
  );
  return files.filter((file) => file.includes(answer.sessionId));
}
