import { isSpecType } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PermissionUpdate } from '../../../src/driver/permission-ask.ts';
import { toDecision } from '../../../src/engine/requests/answer.ts';
import { formFor } from '../../../src/mcp/forms/request-forms.ts';
import type { Form } from '../../../src/mcp/forms/form.ts';
import { ASKER, openRequest } from './open-request.ts';

const ALL = { multiSelect: true };
const addRule: PermissionUpdate = {
  type: 'addRules',
  rules: [{ toolName: 'Bash', ruleContent: 'cp a *' }],
  behavior: 'allow',
  destination: 'localSettings',
};
const acceptEdits: PermissionUpdate = { type: 'setMode', mode: 'acceptEdits', destination: 'session' };
const moreDirectories: PermissionUpdate = { type: 'addDirectories', directories: ['/'], destination: 'session' };

const choices = ({ requestedSchema }: Form, name = 'decision'): unknown =>
  (requestedSchema.properties[name] as { enum?: string[] }).enum;

describe('a permission form', () => {
  const bash = (more = {}): Form =>
    formFor(ASKER, openRequest('Bash', { command: 'npm test', run_in_background: true }, more), ALL);

  it('shows the complete tool input and who is asking', () => {
    const { message } = bash({ agentId: 'a1', decisionReason: 'a rule says so', blockedPath: '/etc' });
    expect(message.split('\n')).toEqual([
      'Claude (a sub-agent) wants to use Bash.',
      'command: npm test',
      'run_in_background: true',
      'Asked because: a rule says so',
      'Path: /etc',
      'Directory: /work/project (session 12345678)',
    ]);
  });

  it('shows a URL, a new file and a replace-all edit', () => {
    const message = (toolName: string, input: Record<string, unknown>): string =>
      formFor(ASKER, openRequest(toolName, input), ALL).message;
    expect(message('WebFetch', { prompt: 'p', url: 'https://example.com' })).toContain(
      'url: https://example.com\nprompt: p',
    );
    expect(message('Write', { file_path: '/a', content: 'one\ntwo\n' })).toContain(
      'file_path: /a\nchange:\n│ + one\n│ + two',
    );
    expect(message('Edit', { file_path: '/a', old_string: '1', new_string: '2', replace_all: true })).toContain(
      'file_path: /a\nreplace_all: true\nchange:\n│ - 1\n│ + 2',
    );
    expect(message('mcp__db__query', { sql: { drop: 'all' } })).toContain('sql: {"drop":"all"}');
  });

  it.each<[string, PermissionUpdate[] | undefined, boolean, PermissionUpdate[] | undefined]>([
    ['no suggestion', undefined, false, undefined],
    ['an empty suggestion', [], false, undefined],
    ['a rule', [addRule], false, [addRule]],
    ['a rule that Claude Code marks as not to be offered', [addRule], true, undefined],
    ['a rule among wider rights', [addRule, moreDirectories, acceptEdits], false, [addRule]],
    ['wider rights only', [moreDirectories, acceptEdits], false, undefined],
    ['a rule that denies', [{ ...addRule, behavior: 'deny' }], false, undefined],
  ])('with %s offers only choices a person can judge', (_, suggestions, onceOnly, granted) => {
    const form = bash({ suggestions, onceOnly });
    expect(choices(form)).toEqual(granted ? ['Allow once', 'Always allow', 'Deny'] : ['Allow once', 'Deny']);
    expect(form.read({ decision: 'Always allow' })).toEqual(
      granted && { decision: 'allow', updatedPermissions: granted },
    );
    expect(form.read({ decision: 'Allow once' })).toEqual({ decision: 'allow' });
    expect(form.message.includes('Bash(cp a *) (your own settings for this project)')).toBe(granted !== undefined);
  });

  it('offers exactly this command in place of a rule that could run anything', () => {
    const form = bash({ suggestions: [{ ...addRule, rules: [{ toolName: 'Bash', ruleContent: 'npm test *' }] }] });
    expect(choices(form)).toEqual(['Allow once', 'Always allow', 'Deny']);
    expect(form.message).toContain('“Always allow” allows: exactly this command (this session only)');
    expect(form.message).not.toContain('npm test *');
    expect(form.read({ decision: 'Always allow' })).toEqual({ decision: 'allow', always: true });
  });

  const long = 'x'.repeat(31_000);
  it.each<[string, Record<string, unknown>, string]>([
    ['Bash', { command: `echo ${long}; touch tail` }, `command: echo ${long}; touch tail\n`],
    ['mcp__db__query', { sql: long }, `sql: ${long}\n`],
    ['mcp__db__query', { sql: { text: long } }, `sql: {"text":"${long}"}\n`],
    ['Write', { file_path: '/a', content: `${long}\n` }, `change:\n│ + ${long}\n`],
    [
      'Edit',
      { file_path: '/a', old_string: 'o', new_string: 'n\n'.repeat(5_000) },
      `│ - o${'\n│ + n'.repeat(5_000)}\n`,
    ],
  ])('shows a long %s in full', (toolName, input, text) => {
    const form = formFor(ASKER, openRequest(toolName, input, { suggestions: [addRule] }), ALL);
    expect(form.message).toContain(text);
    expect(form.message).not.toContain('not shown');
    expect(choices(form)).toEqual(['Allow once', 'Always allow', 'Deny']);
  });

  it('shows every field, however many there are', () => {
    const input = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`field${index}`, index]));
    const { message } = formFor(ASKER, openRequest('mcp__a__b', input), ALL);
    for (const name of Object.keys(input)) expect(message).toContain(`${name}: `);
  });

  it.each<[string, Record<string, unknown>]>([
    ['Bash', { command: `echo ${'x'.repeat(40_000)}; touch tail` }],
    ['Write', { file_path: '/a', content: 'line\n'.repeat(10_000) }],
    ['mcp__a__b', Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`f${index}`, 'x'.repeat(200)]))],
  ])('does not offer to allow a %s too long to show in full', (toolName, input) => {
    const form = formFor(ASKER, openRequest(toolName, input, { suggestions: [addRule] }), ALL);
    expect(form.message).toMatch(/Too long to show in full: \d{5} characters.* It cannot be allowed here\./);
    expect(form.message.length).toBeLessThan(32_000);
    if (toolName === 'Bash') expect(form.message).toContain('; touch tail');
    expect(choices(form)).toEqual(['Deny']);
    for (const decision of ['Allow once', 'Always allow', 'allow']) expect(form.read({ decision })).toBeUndefined();
    expect(form.read({ decision: 'Deny' })).toMatchObject({
      decision: 'deny',
      message: expect.stringContaining('do it in smaller steps'),
    });
  });

  it('does not offer a permanent rule too long to read', () => {
    const rule: PermissionUpdate = {
      ...addRule,
      rules: [{ toolName: 'Bash', ruleContent: `touch ${'x'.repeat(3_000)}` }],
    };
    expect(choices(bash({ suggestions: [rule] }))).toEqual(['Allow once', 'Deny']);
  });

  it.each([
    [{ decision: 'Deny' }, 'The user refused this.'],
    [{ decision: 'Deny', message: null }, 'The user refused this.'],
    [{ decision: 'Deny', message: ' not now ' }, 'The user refused this: not now'],
  ])('reads the refusal %j', (content, message) => {
    expect(bash().read(content)).toEqual({ decision: 'deny', message });
  });

  it('also accepts the decision values of the tool', () => {
    expect(bash().read({ decision: 'allow' })).toEqual({ decision: 'allow' });
    expect(bash().read({ decision: 'deny', message: 'no' })).toMatchObject({ decision: 'deny' });
  });

  it('allows only on an exact choice', () => {
    const content = fc.oneof(
      fc.anything(),
      fc.record({ decision: fc.anything(), message: fc.anything() }, { requiredKeys: [] }),
      fc.record({ decision: fc.constantFrom('allow', 'Allow', 'allow once', 'yes', true, 1, ['Allow once']) }),
    );
    fc.assert(
      fc.property(content, (given) => {
        const answer = bash({ suggestions: [addRule] }).read(given);
        const decision = (given as { decision?: unknown } | null | undefined)?.decision;
        if (answer?.decision === 'allow') expect(['Allow once', 'Always allow', 'allow']).toContain(decision);
      }),
    );
  });
});

describe('a plan form', () => {
  const form = formFor(ASKER, openRequest('ExitPlanMode', { planFilePath: '/plans/p.md' }, {}, 'Look\nthen leap'), ALL);

  it('shows the plan', () => {
    expect(form.message).toContain('│ Look\n│ then leap\nplanFilePath: /plans/p.md');
    const empty = formFor(ASKER, openRequest('ExitPlanMode', {}, {}, ''), ALL);
    expect(empty.message).toContain('did not provide a written plan');
  });

  it('shows every other field of the input, and counts it towards what can be shown', () => {
    const withPrompts = (prompt: string): Form =>
      formFor(
        ASKER,
        openRequest('ExitPlanMode', { plan: 'Look', allowedPrompts: [{ tool: 'Bash', prompt }] }, {}, 'Look'),
        ALL,
      );
    const { message } = withPrompts('run anything');
    expect(message).toContain('│ Look\nallowedPrompts: [{"tool":"Bash","prompt":"run anything"}]');
    expect(message.match(/Look/g)).toHaveLength(1);
    expect(choices(withPrompts('x'.repeat(40_000)))).toEqual(['Ask for changes']);
  });

  it('shows a long plan in full, and does not offer to approve one it cannot show', () => {
    const plan = (chars: number): Form =>
      formFor(ASKER, openRequest('ExitPlanMode', {}, {}, `${'x'.repeat(chars)} end`), ALL);
    expect(plan(31_000).message).toContain(`${'x'.repeat(31_000)} end`);
    expect(choices(plan(31_000))).toHaveLength(2);
    expect(choices(plan(40_000))).toEqual(['Ask for changes']);
    expect(plan(40_000).message).toMatch(/x end\nToo long to show in full: 40004 characters/);
    expect(plan(40_000).read({ decision: 'allow' })).toBeUndefined();
  });

  it.each([
    [{ decision: 'Approve and start the work' }, { decision: 'allow' }],
    [{ decision: 'allow' }, { decision: 'allow' }],
    [
      { decision: 'Ask for changes', changes: ' leap ' },
      { decision: 'deny', message: 'The user wants the plan changed: leap' },
    ],
    [{ decision: 'Ask for changes' }, { decision: 'deny', message: expect.stringContaining('did not say what') }],
    [{ decision: 'Approve' }, undefined],
    [{ changes: 'Approve and start the work' }, undefined],
    [undefined, undefined],
  ])('reads %j', (content, answer) => {
    expect(form.read(content)).toEqual(answer);
  });
});

describe('a question form', () => {
  const question = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
    question: 'Which?',
    header: 'Pick',
    multiSelect: false,
    options: [{ label: 'A', description: 'first' }, { label: 'B\u202e' }],
    ...more,
  });
  const form = (questions: unknown, abilities = ALL): Form =>
    formFor(ASKER, openRequest('AskUserQuestion', { questions }), abilities);
  const OTHER = 'Something else (write it below)';

  it('returns Claude’s own labels, whatever the person was shown', () => {
    const shown = form([question()]);
    expect(choices(shown, 'answer_1')).toEqual(['A', 'B\\u202e', OTHER]);
    expect(shown.read({ answer_1: 'B\\u202e' })).toEqual({ decision: 'allow', answers: ['B\u202e'] });
  });

  it.each<[Record<string, unknown>, string | string[] | undefined]>([
    [{ answer_1: 'A' }, 'A'],
    [{ answer_1: 'A', answer_1_other: '' }, 'A'],
    [{ answer_1: OTHER, answer_1_other: ' mine ' }, 'mine'],
    [{ answer_1: 'A', answer_1_other: 'but small' }, 'A, but small'],
    [{ answer_1: OTHER }, undefined],
    [{ answer_1: 'C' }, undefined],
    [{ answer_1: ['A'] }, undefined],
    [{ answer_1_other: 'mine' }, undefined],
    [{ answer_1: 'A', answer_1_other: 5 }, undefined],
    [{}, undefined],
  ])('with one choice reads %j as %j', (content, answer) => {
    expect(form([question()]).read(content)).toEqual(answer && { decision: 'allow', answers: [answer] });
  });

  it.each<[Record<string, unknown>, string | string[] | undefined]>([
    [{ answer_1: ['A', 'B\\u202e'] }, ['A', 'B\u202e']],
    [{ answer_1: ['A', OTHER], answer_1_other: 'mine' }, ['A', 'mine']],
    [{ answer_1: [OTHER] }, undefined],
    [{ answer_1: [] }, undefined],
    [{ answer_1: 'A' }, undefined],
    [{ answer_1: ['A', 'C'] }, undefined],
  ])('with several choices reads %j as %j', (content, answer) => {
    const answers = form([question({ multiSelect: true })]).read(content);
    expect(answers).toEqual(answer && { decision: 'allow', answers: [answer] });
  });

  it('is a text field for a client that cannot show choices', () => {
    const older = form([question({ multiSelect: true })], { multiSelect: false });
    expect(older.requestedSchema.properties['answer_1']).toMatchObject({ type: 'string' });
    expect(older.read({ answer_1: 'A, B' })).toEqual({ decision: 'allow', answers: ['A, B'] });
  });

  it('is a text field if there are no options', () => {
    expect(form([question({ options: undefined })]).read({ answer_1: 'so' })).toEqual({
      decision: 'allow',
      answers: ['so'],
    });
  });

  it('gives no answer if there is no question', () => {
    expect(form([]).read({})).toBeUndefined();
    expect(form('none').read({})).toBeUndefined();
  });
});

describe('whatever Claude Code asks', () => {
  const anyInput = fc.dictionary(fc.string(), fc.jsonValue());
  const anyQuestions = fc.array(
    fc.oneof(
      fc.record(
        {
          question: fc.string(),
          header: fc.string(),
          multiSelect: fc.boolean(),
          options: fc.array(fc.record({ label: fc.string(), description: fc.string() }), { maxLength: 4 }),
        },
        { requiredKeys: ['question'] },
      ),
      fc.jsonValue(),
    ),
    { maxLength: 4 },
  );
  const anyRequest = fc.oneof(
    fc
      .tuple(fc.constantFrom('Bash', 'Edit', 'Write', 'NotebookEdit', 'WebFetch', 'mcp__a__b', 'constructor'), anyInput)
      .map(([toolName, input]) => openRequest(toolName, input)),
    fc.string().map((plan) => openRequest('ExitPlanMode', {}, {}, plan)),
    anyQuestions.map((questions) => openRequest('AskUserQuestion', { questions })),
  );

  it('the form is valid in the protocol and of a readable size', () => {
    fc.assert(
      fc.property(anyRequest, fc.boolean(), (request, multiSelect) => {
        const { message, requestedSchema } = formFor(ASKER, request, { multiSelect });
        expect(isSpecType.ElicitRequestFormParams({ mode: 'form', message, requestedSchema })).toBe(true);
        const names = Object.keys(requestedSchema.properties);
        expect(names).toEqual(expect.arrayContaining(requestedSchema.required ?? []));
        expect(message.length).toBeLessThan(40_000);
      }),
    );
  });

  it('a completed question form is an answer the session accepts', () => {
    fc.assert(
      fc.property(anyQuestions, (questions) => {
        const request = openRequest('AskUserQuestion', { questions });
        const shown = formFor(ASKER, request, ALL);
        const filled = Object.entries(shown.requestedSchema.properties).map(([name, schema]) => {
          const first =
            'enum' in schema
              ? schema.enum[0]
              : 'items' in schema && 'enum' in schema.items
                ? [schema.items.enum[0]]
                : 'x';
          return [name, first];
        });
        const answer = shown.read(Object.fromEntries(filled));
        if (answer) expect(toDecision(request, answer, 'human')).toMatchObject({ behavior: 'allow' });
        else expect(filled).toEqual([]);
      }),
    );
  });
});
