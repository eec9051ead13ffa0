import { expect, test } from 'vitest';
import { z } from 'zod';
import { nestFlat, parseArguments, checkShape, type Arguments } from './arguments.ts';
import { TOOLSETS } from './toolsets.ts';

const schema = z.strictObject({
  prompt: z.string(),
  maxTurns: z.int().positive().optional(),
  systemPrompt: z.union([z.string(), z.strictObject({ type: z.literal('preset') })]).optional(),
  advanced: z
    .strictObject({ effort: z.enum(['low', 'high']), debug: z.boolean() })
    .partial()
    .optional(),
});

const problemOf = (args: Record<string, unknown>): string => {
  try {
    parseArguments(schema, args, ['effort', 'debug']);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('no problem was reported');
};

test.each([
  [{ prompt: 'x', maxTurn: 3 }, 'Unknown parameter maxTurn; did you mean maxTurns?'],
  [{ prompt: 'x', efort: 'low' }, 'Unknown parameter efort; did you mean effort?'],
  [{ prompt: 'x', advanced: { efort: 'low' } }, 'Unknown parameter advanced.efort; did you mean effort?'],
  [{ prompt: 'x', message: 'y' }, 'Unknown parameter message; did you mean prompt?'],
  [{ prompt: 'x', zzzzzzzzz: 1 }, 'Unknown parameter zzzzzzzzz.'],
  [{ prompt: 7 }, 'prompt: '],
  [{}, 'prompt: '],
  [{ prompt: 'x', maxTurns: 0 }, 'maxTurns: '],
  [{ prompt: 'x', advanced: { effort: 'huge' } }, 'advanced.effort: '],
  [{ prompt: 'x', systemPrompt: { type: 'other' } }, 'systemPrompt.type: '],
])('%j → %s', (args, words) => {
  expect(problemOf(args)).toContain(words);
});

test('all problems are reported together', () => {
  expect(problemOf({ prompt: 7, maxTurns: -1, foo: 1 })).toMatch(/prompt: .*maxTurns: .*Unknown parameter foo/s);
});

test('valid arguments are returned', () => {
  expect(parseArguments(schema, { prompt: 'x', advanced: { debug: true } }, [])).toEqual({
    prompt: 'x',
    advanced: { debug: true },
  });
});

const nest = (args: Record<string, unknown>): Record<string, unknown> =>
  nestFlat(args, 'advanced', ['effort', 'debug']);

test.each([
  [{ prompt: 'x' }, { prompt: 'x' }],
  [
    { prompt: 'x', effort: 'low' },
    { prompt: 'x', advanced: { effort: 'low' } },
  ],
  [{ effort: 'low', advanced: { debug: true } }, { advanced: { effort: 'low', debug: true } }],
  [{ effort: 'low', advanced: { effort: 'low' } }, { advanced: { effort: 'low' } }],
  [{ effort: undefined }, { effort: undefined }],
  [
    { effort: 'low', advanced: 'nonsense' },
    { effort: 'low', advanced: 'nonsense' },
  ],
])('%j is %j', (flat, nested) => {
  expect(nest(flat)).toEqual(nested);
});

test('conflicting values are refused', () => {
  expect(() => nest({ effort: 'low', advanced: { effort: 'high' } })).toThrow(/effort is given twice/);
});

const TOOLS = [...TOOLSETS.compact, ...TOOLSETS.explicit];
const ID = '00000000-0000-4000-8000-000000000000';

function parse(name: string, args: Arguments): unknown {
  const tool = TOOLS.find((candidate) => candidate.name === name)!;
  return parseArguments(tool.input(), tool.normalize(args), tool.flatNames);
}

const REQUIRED: Readonly<Record<string, Arguments>> = {
  claude_code: { prompt: 'x' },
  claude_code_reply: { sessionId: ID, prompt: 'x' },
  claude_code_check: { action: 'poll', sessionId: ID },
  claude_code_session: { action: 'list' },
  claude_create_session: { prompt: 'x' },
  claude_send_message: { sessionId: ID, message: 'x' },
  claude_get_status: { sessionId: ID },
  claude_respond: { sessionId: ID, inputId: 'y', decision: 'deny' },
  claude_interrupt: { sessionId: ID },
  claude_list_sessions: {},
};

test.each(TOOLS)('every optional parameter of $name may be null, including flat ones', (tool) => {
  const required = REQUIRED[tool.name]!;
  const optional = [...Object.keys(tool.input().shape), ...tool.flatNames].filter((name) => !(name in required));
  const nulls = Object.fromEntries(optional.map((name) => [name, null]));
  expect(parse(tool.name, { ...nulls, ...required })).toEqual(required);
});

const AGENT = { description: 'd', prompt: 'p' };

test.each<[what: string, tool: string, args: Arguments, parsed: Arguments]>([
  ['in advanced', 'claude_code', { advanced: { effort: null, debug: true } }, { advanced: { debug: true } }],
  ['in a preset', 'claude_code', preset({ append: null }), preset({})],
  ['in a list', 'claude_code', plugins({ skipMcpDiscovery: null }), plugins({})],
  ['of a sub-agent', 'claude_code', agents({ ...AGENT, model: null }), agents(AGENT)],
  ['of a server', 'claude_code', servers({ command: 'c', args: null }), servers({ command: 'c' })],
  [
    'beside its flat form',
    'claude_code',
    { effort: 'low', advanced: { effort: null } },
    { advanced: { effort: 'low' } },
  ],
  ['flat beside nested', 'claude_code', { effort: null, advanced: { effort: 'low' } }, { advanced: { effort: 'low' } }],
  ['with advanced null', 'claude_code', { effort: 'low', advanced: null }, { advanced: { effort: 'low' } }],
  [
    'two levels down',
    'claude_code_reply',
    { diskResumeConfig: { cwd: null, advanced: { effort: null, debug: true } }, maxTurns: 2 },
    { diskResumeConfig: { advanced: { debug: true }, maxTurns: 2 } },
  ],
  ['in pollOptions', 'claude_code_check', { pollOptions: { maxBytes: null } }, { pollOptions: {} }],
])('a null %s counts as omitted', (_what, tool, args, parsed) => {
  expect(parse(tool, { ...REQUIRED[tool], ...args })).toEqual({ ...REQUIRED[tool], ...parsed });
});

test.each<[what: string, tool: string, args: Arguments]>([
  ['updatedInput', 'claude_respond', { decision: 'allow', updatedInput: { a: null, b: [null, { c: null }] } }],
  ['a JSON Schema', 'claude_code', advanced({ outputFormat: { type: 'json_schema', schema: { enum: [null] } } })],
  ['settings', 'claude_code', advanced({ settings: { model: null } })],
  ['sandbox', 'claude_code', advanced({ sandbox: { network: null } })],
])('a null in %s stays', (_what, tool, args) => {
  expect(parse(tool, { ...REQUIRED[tool], ...args })).toEqual({ ...REQUIRED[tool], ...args });
});

test.each<[what: string, tool: string, args: Arguments, words: string]>([
  ['a required parameter', 'claude_code', { prompt: null }, 'prompt: '],
  ['a parameter that does not exist', 'claude_code', { prompt: 'x', promt: null }, 'Unknown parameter promt'],
  ['a variable', 'claude_code', { prompt: 'x', advanced: { env: { A: null } } }, 'advanced.env.A: '],
])('null for %s is refused', (_what, tool, args, words) => {
  expect(() => parse(tool, args)).toThrow(words);
});

function advanced(options: Arguments): Arguments {
  return { advanced: options };
}

function preset(more: Arguments): Arguments {
  return { systemPrompt: { type: 'preset', preset: 'claude_code', ...more } };
}

function plugins(more: Arguments): Arguments {
  return advanced({ plugins: [{ type: 'local', path: '/p', ...more }] });
}

function agents(agent: Arguments): Arguments {
  return advanced({ agents: { helper: agent } });
}

function servers(server: Arguments): Arguments {
  return advanced({ mcpServers: { box: server } });
}

const parsed = (json: string): Record<string, unknown> => JSON.parse(json) as Record<string, unknown>;

test.each([
  ['{"agents":{"a":{"tools":["x"]}}}'],
  [`{"agents":${'['.repeat(98)}${']'.repeat(98)}}`],
  ['{"constructor":{"prototype":1}}'],
])('%s passes', (json) => {
  expect(() => checkShape(parsed(json))).not.toThrow();
});

test.each([
  [`{"agents":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'agents: nested deeper than 100 levels.'],
  [`{"a":${'{"b":'.repeat(5_000)}1${'}'.repeat(5_000)}}`, 'a: nested deeper than 100 levels.'],
  ['{"__proto__":1}', 'Unknown parameter __proto__.'],
  ['{"advanced":{"agents":{"__proto__":{"x":1}}}}', 'Unknown parameter advanced.agents.__proto__.'],
  ['{"list":[{"__proto__":null}]}', 'Unknown parameter list.0.__proto__.'],
])('%.40s is refused', (json, message) => {
  expect(() => checkShape(parsed(json))).toThrow(message);
});
