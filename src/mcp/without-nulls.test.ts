import { expect, test } from 'vitest';
import type { Arguments } from './arguments.ts';
import { parseArguments } from './arguments.ts';
import { TOOLSETS } from './toolsets.ts';

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
