/** Access control: every route and every tool, for every kind of principal and for invalid credentials. */

import type { Client } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { TOOL_LISTING } from '../../src/mcp/tool-listing.ts';
import { openAccessWorld, PEOPLE, type AccessWorld, type Headers, type Made, type Person } from './access-world.ts';

/** Allowed, forbidden by role, or answered as if it did not exist. */
type Verdict = 'allowed' | 'forbidden' | 'hidden';
type Verdicts = Readonly<Record<Person, Verdict>>;

const verdicts = (owner: Verdict, other: Verdict, viewer: Verdict, approver: Verdict, admin: Verdict): Verdicts => ({
  ...{ owner, other, viewer, approver, admin },
});

const ALL = verdicts('allowed', 'allowed', 'allowed', 'allowed', 'allowed');
const NONE = verdicts('forbidden', 'forbidden', 'forbidden', 'forbidden', 'forbidden');
const READS = verdicts('allowed', 'hidden', 'allowed', 'allowed', 'allowed');
const READS_ALL = verdicts('forbidden', 'forbidden', 'allowed', 'allowed', 'allowed');
const STARTS = verdicts('allowed', 'allowed', 'forbidden', 'forbidden', 'allowed');
const DRIVES = verdicts('allowed', 'hidden', 'forbidden', 'forbidden', 'allowed');
const STOPS = verdicts('allowed', 'hidden', 'forbidden', 'allowed', 'allowed');
const ANSWERS = STOPS;
const ADMINISTERS = verdicts('forbidden', 'forbidden', 'forbidden', 'forbidden', 'allowed');

const AUTHORS = verdicts('forbidden', 'forbidden', 'forbidden', 'allowed', 'allowed');

const RULE = { decision: 'allow', tool: 'Bash', match: 'npm test', directory: process.cwd() };

// ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────

interface RouteRow {
  readonly who: Verdicts;
  /** The status if allowed; browsers may get a different one. */
  readonly status: number | readonly [token: number, browser: number];
  readonly state?: 'idle' | 'waiting';
  readonly body?: object;
}

const cwd = process.cwd();
const prompt = 'more';

/** This hub's sessions have neither worktrees nor checkpoints: routes that need them return 400 to those allowed. */
const ROUTES: Readonly<Record<string, RouteRow | 'anyone'>> = {
  'POST /api/v1/sign-in': 'anyone',
  'DELETE /api/v1/sign-in': { who: ALL, status: [400, 204] },
  'GET /metrics': { who: READS_ALL, status: 200 },
  'GET /api/v1/sessions': { who: ALL, status: 200 },
  'GET /api/v1/sessions/{id}': { who: READS, status: 200 },
  'GET /api/v1/sessions/{id}/events': { who: READS, status: 200 },
  'GET /api/v1/sessions/{id}/events/{event}/images': { who: READS, status: 400 },
  'GET /api/v1/sessions/{id}/diff': { who: READS, status: 200 },
  'POST /api/v1/sessions': { who: STARTS, status: 201, body: { prompt, cwd } },
  'POST /api/v1/sessions/{id}/messages': { who: DRIVES, status: 200, body: { prompt } },
  'POST /api/v1/sessions/{id}/fork': { who: DRIVES, status: 201, body: { prompt } },
  'POST /api/v1/sessions/{id}/rename': { who: DRIVES, status: 200, body: { title: 'new' } },
  'POST /api/v1/sessions/{id}/archive': { who: DRIVES, status: 200, body: { archived: true } },
  'PATCH /api/v1/sessions/{id}/messages/{message}': { who: DRIVES, status: 200, body: { prompt: 'other words' } },
  'DELETE /api/v1/sessions/{id}/messages/{message}': { who: DRIVES, status: 200 },
  'POST /api/v1/sessions/{id}/interrupt': { who: STOPS, status: 200, body: {} },
  'POST /api/v1/sessions/{id}/cancel': { who: STOPS, status: 200, body: {} },
  'POST /api/v1/sessions/{id}/rewind': { who: DRIVES, status: 400, body: { toUserMessage: 'u1' } },
  'POST /api/v1/sessions/{id}/apply': { who: DRIVES, status: 400, body: {} },
  'POST /api/v1/sessions/{id}/discard': { who: DRIVES, status: 400, body: {} },
  'GET /api/v1/requests': { who: ALL, status: 200, state: 'waiting' },
  'GET /api/v1/requests/{requestId}': { who: READS, status: 200, state: 'waiting' },
  'POST /api/v1/requests/{requestId}/answer': {
    who: ANSWERS,
    status: 200,
    state: 'waiting',
    body: { decision: 'deny' },
  },
  'GET /api/v1/push': { who: ALL, status: 200 },
  // No push service can be reached from here: whoever is allowed to subscribe is told that this one is unknown.
  'POST /api/v1/push/subscriptions': {
    who: ALL,
    status: 400,
    body: { endpoint: 'https://push.example/1', keys: { p256dh: 'AA', auth: 'AA' } },
  },
  'DELETE /api/v1/push/subscriptions/{id}': { who: ALL, status: 404 },
  'POST /api/v1/push/subscriptions/{id}/test': { who: ALL, status: 404, body: {} },
  'GET /api/v1/events': { who: ALL, status: 200 },
  'GET /api/v1/me': { who: ALL, status: 200 },
  'GET /api/v1/costs': { who: ALL, status: 200 },
  'GET /api/v1/directories': { who: STARTS, status: 400 },
  'GET /api/v1/models': { who: STARTS, status: 200 },
  'POST /api/v1/sign-in-codes': { who: ADMINISTERS, status: 201, body: {} },
  'GET /api/v1/audit': { who: READS_ALL, status: 200 },
  'GET /api/v1/tokens': { who: ADMINISTERS, status: 200 },
  'POST /api/v1/tokens': { who: ADMINISTERS, status: 201, body: { name: 'new', role: 'viewer' } },
  'DELETE /api/v1/tokens/{id}': { who: ADMINISTERS, status: 200 },
  'GET /api/v1/rules': { who: READS_ALL, status: 200 },
  'GET /api/v1/rules/packs': { who: READS_ALL, status: 200 },
  'POST /api/v1/rules/replay': { who: READS_ALL, status: 200, body: RULE },
  'POST /api/v1/rules': { who: AUTHORS, status: 201, body: RULE },
  'POST /api/v1/rules/batch': { who: AUTHORS, status: 201, body: { rules: [RULE] } },
  'PATCH /api/v1/rules/{id}': { who: AUTHORS, status: 404, body: { enabled: false } },
  'DELETE /api/v1/rules/{id}': { who: AUTHORS, status: 404 },
  'GET /api/v1/openapi.json': { who: ALL, status: 200 },
};

function targetOf(route: string, { sessionId, requestId, tokenId }: Made): [method: string, path: string] {
  const [method = '', template = ''] = route.split(' ');
  const id = template.includes('/tokens/') ? tokenId : sessionId;
  return [method, template.replace('{id}', id).replace('{requestId}', requestId)];
}

const statusFor = ({ who, status }: RouteRow, person: Person, browser: boolean): number => {
  if (who[person] === 'forbidden') return 403;
  if (who[person] === 'hidden') return 404;
  return typeof status === 'number' ? status : status[browser ? 1 : 0];
};

test('every route enforces roles and ownership, by token and in a browser', async () => {
  const world = await openAccessWorld();
  expect(world.routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(ROUTES).sort());
  const unchanged = { idle: await world.make('idle'), waiting: await world.make('waiting') };
  const browsers = {} as Record<Person, Headers>;
  for (const person of PEOPLE) browsers[person] = await world.browser(person);
  const got: Record<string, number> = {};
  const expected: Record<string, number> = {};
  for (const [route, row] of Object.entries(ROUTES)) {
    if (row === 'anyone') continue;
    const endsSignIn = route === 'DELETE /api/v1/sign-in';
    for (const browser of [false, true]) {
      for (const person of PEOPLE) {
        const changes = !route.startsWith('GET') && row.who[person] === 'allowed';
        const made = changes ? await world.make(row.state ?? 'idle') : unchanged[row.state ?? 'idle'];
        const signIn = endsSignIn ? await world.browser(person) : browsers[person];
        const headers = browser ? signIn : world.token(person);
        const { status, text } = await world.call(...targetOf(route, made), headers, row.body);
        const key = `${route}: ${person}${browser ? ', browser' : ''}`;
        got[key] = status;
        expected[key] = statusFor(row, person, browser);
        if (person === 'other' && status < 300) expect(text, key).not.toContain(made.sessionId);
      }
    }
  }
  expect(got).toEqual(expected);
});

test('every route and tool refuses missing, wrong, expired and revoked credentials', async () => {
  const world = await openAccessWorld();
  const made = await world.make('waiting');
  const effects = () => [world.hub.audit.filter(({ kind }) => kind !== 'server').length, world.hub.agents.length];
  // Records are written once what they tell is stored.
  await world.hub.engine.stored();
  const before = effects();
  const calls = [
    ...Object.entries(ROUTES)
      .filter(([, row]) => row !== 'anyone')
      .map(([route, row]) => [...targetOf(route, made), (row as RouteRow).body] as const),
    ...TOOL_ROWS.map(({ toolset, tool, args }) => {
      const params = { name: tool, arguments: args(made) };
      return ['POST', `/mcp?toolset=${toolset}`, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }] as const;
    }),
    ['GET', '/mcp', undefined] as const,
    ['DELETE', '/mcp', undefined] as const,
  ];
  for (const [method, path, body] of calls) {
    for (const [name, headers] of Object.entries(world.refused)) {
      const { status, text } = await world.call(method, path, headers, body);
      expect([method, path, name, status]).toEqual([method, path, name, 401]);
      expect(JSON.parse(text)).toMatchObject({ error: { code: 'UNAUTHENTICATED' } });
    }
  }
  // A browser sign-in is valid for the API only; an MCP client needs a token.
  expect((await world.call('POST', '/mcp', await world.browser('admin'), {})).status).toBe(401);
  expect(effects()).toEqual(before);
  expect(world.hub.engine.session(made.sessionId).requests).toHaveLength(1);
});

test('only a valid token or the code from a link can sign in', async () => {
  const world = await openAccessWorld();
  const signIn = async (body: object): Promise<number> =>
    (await world.call('POST', '/api/v1/sign-in', {}, body)).status;
  const tokenOf = ({ authorization = '' }: Readonly<Record<string, string>>): string => authorization.slice(7);
  for (const person of PEOPLE) expect(await signIn({ token: tokenOf(world.token(person)) })).toBe(200);
  for (const name of ['unknown', 'shortened', 'expired', 'revoked', 'an unsigned JWT'])
    expect([name, await signIn({ token: tokenOf(world.refused[name] ?? {}) })]).toEqual([name, 401]);
  expect(await signIn({ code: 'a'.repeat(43) })).toBe(401);
  expect(await signIn({})).toBe(400);
});

// ── tools and resources ──────────────────────────────────────────────────────────────────────────────────────────

interface ToolRow {
  readonly toolset: 'compact' | 'explicit';
  readonly tool: string;
  readonly action?: string;
  readonly who: Verdicts;
  readonly state?: 'idle' | 'waiting';
  readonly args: (made: Made) => Record<string, unknown>;
  /** The error if allowed, due to the session's state. */
  readonly error?: string;
}

const ofSession = ({ sessionId }: Made): { sessionId: string } => ({ sessionId });

const check = (action: string, who: Verdicts, more: Partial<ToolRow> & { extra?: (made: Made) => object } = {}) => ({
  ...{ toolset: 'compact' as const, tool: 'claude_code_check', action, who },
  args: (made: Made) => ({ action, ...ofSession(made), ...more.extra?.(made) }),
  ...(more.state && { state: more.state }),
});

const manage = (action: string, who: Verdicts, error?: string, extra: object = {}): ToolRow => ({
  ...{ toolset: 'compact', tool: 'claude_code_session', action, who },
  args: (made) => ({ action, ...(action === 'list' ? {} : ofSession(made)), ...extra }),
  ...(error !== undefined && { error }),
});

const TOOL_ROWS: readonly ToolRow[] = [
  { toolset: 'compact', tool: 'claude_code', who: STARTS, args: () => ({ prompt, cwd }) },
  { toolset: 'compact', tool: 'claude_code_reply', who: DRIVES, args: (made) => ({ ...ofSession(made), prompt }) },
  check('poll', READS),
  check('wait', READS),
  check('respond_permission', ANSWERS, {
    state: 'waiting',
    extra: ({ requestId }) => ({ requestId, decision: 'deny' }),
  }),
  manage('list', ALL),
  manage('list', NONE, undefined, { scope: 'disk' }),
  manage('get', READS),
  manage('cancel', STOPS),
  manage('interrupt', STOPS),
  manage('rewind', DRIVES, 'INVALID_ARGUMENT', { toUserMessage: 'u1' }),
  manage('diff', READS),
  manage('compare', READS, 'INVALID_ARGUMENT'),
  manage('apply', DRIVES, 'INVALID_ARGUMENT'),
  manage('discard', DRIVES, 'INVALID_ARGUMENT'),
  {
    ...{ toolset: 'explicit', tool: 'claude_create_session', who: STARTS },
    args: () => ({ prompt, workingDirectory: cwd }),
  },
  {
    ...{ toolset: 'explicit', tool: 'claude_send_message', who: DRIVES },
    args: (made) => ({ ...ofSession(made), message: prompt }),
  },
  { toolset: 'explicit', tool: 'claude_get_status', who: READS, args: ofSession },
  {
    ...{ toolset: 'explicit', tool: 'claude_respond', who: ANSWERS, state: 'waiting' },
    args: (made) => ({ ...ofSession(made), inputId: made.requestId, decision: 'deny' }),
  },
  { toolset: 'explicit', tool: 'claude_interrupt', who: STOPS, args: ofSession },
  { toolset: 'explicit', tool: 'claude_list_sessions', who: NONE, args: () => ({}) },
];

/** Every tool, or every action of a tool that has actions. */
function listedTools(): string[] {
  return (['compact', 'explicit'] as const).flatMap((toolset) =>
    TOOL_LISTING[toolset].flatMap(({ name, inputSchema }) => {
      const { action } = (inputSchema.properties ?? {}) as { action?: { enum: string[] } };
      return action ? action.enum.map((one) => `${toolset} ${name} ${one}`) : [`${toolset} ${name}`];
    }),
  );
}

const nameOf = ({ toolset, tool, action }: ToolRow): string =>
  [toolset, tool, ...(action === undefined ? [] : [action])].join(' ');

const ERROR: Readonly<Record<Exclude<Verdict, 'allowed'>, string>> = {
  forbidden: 'PERMISSION_DENIED',
  hidden: 'SESSION_NOT_FOUND',
};

const outcomeFor = ({ who, error = 'ok' }: ToolRow, person: Person): string => {
  const verdict = who[person];
  return verdict === 'allowed' ? error : ERROR[verdict];
};

async function callTool(client: Client, name: string, args: Record<string, unknown>): Promise<[string, string]> {
  const result = await client.callTool({ name, arguments: args }, { timeout: 20_000 });
  const [content] = result.content as { text: string }[];
  const text = content?.text ?? '';
  return [result.isError === true ? (/\[(\w+)\]/.exec(text)?.[1] ?? text) : 'ok', text];
}

async function connectAll(world: AccessWorld): Promise<(row: ToolRow, person: Person) => Client> {
  const clients = new Map<string, Client>();
  for (const toolset of ['compact', 'explicit'] as const)
    for (const person of PEOPLE) clients.set(`${toolset} ${person}`, await world.connect(person, toolset));
  return ({ toolset }, person) => clients.get(`${toolset} ${person}`)!;
}

test('every tool of both toolsets enforces roles and ownership', async () => {
  expect([...new Set(TOOL_ROWS.map(nameOf))].sort()).toEqual(listedTools().sort());
  const world = await openAccessWorld();
  const clientOf = await connectAll(world);
  const unchanged = { idle: await world.make('idle'), waiting: await world.make('waiting') };
  const got: Record<string, string> = {};
  const expected: Record<string, string> = {};
  for (const row of TOOL_ROWS) {
    for (const person of PEOPLE) {
      const changes = row.who !== READS && row.who !== ALL && row.who[person] === 'allowed';
      const made = changes ? await world.make(row.state ?? 'idle') : unchanged[row.state ?? 'idle'];
      const key = `${nameOf(row)}: ${person}`;
      const [outcome, text] = await callTool(clientOf(row, person), row.tool, row.args(made));
      got[key] = outcome;
      expected[key] = outcomeFor(row, person);
      if (person === 'other' && outcome === 'ok') expect(text).not.toContain(made.sessionId);
    }
  }
  expect(got).toEqual(expected);
});

test('every resource enforces roles and ownership', async () => {
  const world = await openAccessWorld();
  const made = await world.make('idle');
  const who: Readonly<Record<string, Verdicts>> = {
    '': ALL,
    '/{id}': READS,
    '/{id}/transcript': READS,
    '/{id}/diff': READS,
  };
  for (const person of PEOPLE) {
    const client = await world.connect(person, 'compact');
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(
      resourceTemplates.map(({ uriTemplate }) => uriTemplate.slice('claude-code://sessions'.length)).sort(),
    ).toEqual(
      Object.keys(who)
        .filter((suffix) => suffix !== '')
        .sort(),
    );
    for (const [suffix, row] of Object.entries(who)) {
      const uri = `claude-code://sessions${suffix.replace('{id}', made.sessionId)}`;
      const read = await client.readResource({ uri }).then(
        ({ contents }) => JSON.stringify(contents),
        () => undefined,
      );
      expect([person, suffix, read === undefined ? 'hidden' : 'allowed']).toEqual([person, suffix, row[person]]);
      if (person === 'other' && read !== undefined) expect(read).not.toContain(made.sessionId);
    }
    const { resources } = await client.listResources();
    expect(JSON.stringify(resources).includes(made.sessionId)).toBe(person !== 'other');
  }
});
