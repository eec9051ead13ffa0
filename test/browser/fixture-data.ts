import type { ApiMe, ApiRequest, ApiSession } from '../../src/schema/api.ts';
import type { ApiEvent } from '../../src/schema/api-events.ts';
import type { MessageBlock } from '../../src/schema/events.ts';
import type { FixtureData } from './fixture-hub.ts';

const ALL: ApiSession['may'] = ['message', 'fork', 'interrupt', 'cancel', 'rewind', 'apply', 'discard', 'archive'];

export function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString();
}

export function admin(): ApiMe {
  return {
    principal: { id: 'person:anna', name: 'Anna', kind: 'person', role: 'admin', attended: true },
    hub: { version: '0.1.0', approvals: 'auto' },
    may: { start: true, answer: 'all', readAll: true, readAudit: true, manageTokens: true },
    starts: { modes: ['default', 'acceptEdits', 'plan'], home: '/home/anna' },
  };
}

export function session(id: string, part: Partial<ApiSession> = {}): ApiSession {
  return {
    sessionId: id,
    status: 'running',
    state: 'running',
    title: 'Fix the failing price test',
    cwd: '/home/anna/shop',
    owner: { id: 'local', name: 'local' },
    activity: '14 tools (6 Read, 5 Edit, 3 Bash), now: npm test, $0.12',
    createdAt: ago(900),
    lastActiveAt: ago(4),
    totalTurns: 7,
    totalCostUsd: 0.42,
    model: 'claude-opus-4-8',
    permissionMode: 'default',
    hub: 'laptop',
    may: ALL,
    ...part,
  };
}

export function request(id: string, sessionId: string, part: Partial<ApiRequest> = {}): ApiRequest {
  return {
    type: 'permission',
    requestId: id,
    sessionId,
    toolName: 'Bash',
    input: { command: 'npm test -- --run price', description: 'Run the price tests' },
    summary: 'npm test',
    createdAt: ago(120),
    cwd: '/home/anna/shop',
    session: { title: 'Fix the failing price test', cwd: '/home/anna/shop', owner: { id: 'local', name: 'local' } },
    status: 'open',
    mayAnswer: true,
    alwaysAllows: 'Bash(npm test:*)',
    said: 'I changed the rounding. Let me run the tests to see whether the total is right now.',
    ...part,
  };
}

export function event(id: number, type: ApiEvent['type'], data: ApiEvent['data'], secondsAgo = 100): ApiEvent {
  return { id, type, timestamp: ago(secondsAgo), data };
}

const inside = (parent?: string) => (parent === undefined ? {} : { parentToolUseId: parent });

export function says(id: number, text: string, parent?: string): ApiEvent {
  return event(id, 'output', {
    kind: 'message',
    role: 'assistant',
    blocks: [{ kind: 'text', text }],
    ...inside(parent),
  });
}

export function calls(id: number, toolUseId: string, toolName: string, input: object, parent?: string): ApiEvent {
  const blocks: MessageBlock[] = [{ kind: 'tool_call', toolUseId, toolName, input: { ...input } }];
  return event(id, 'output', { kind: 'message', role: 'assistant', blocks, ...inside(parent) });
}

export function returns(id: number, toolUseId: string, output: string, isError = false, parent?: string): ApiEvent {
  const blocks: MessageBlock[] = [{ kind: 'tool_result', toolUseId, output, isError }];
  return event(id, 'output', { kind: 'message', role: 'user', blocks, ...inside(parent) });
}

const PLAN = `## Plan

1. Move rounding into \`money.ts\`
2. Use it in **cart** and _invoice_
   - keep the old name as an alias
3. Run the tests

| file | change |
| --- | --- |
| \`src/money.ts\` | new |
| \`src/cart.ts\` | uses it |

\`\`\`ts
export const round = (cents: number) => Math.round(cents);
\`\`\`

> Nothing else is touched. See https://example.com/rounding.`;

const DIFF = `diff --git a/src/price.ts b/src/price.ts
index 1111111..2222222 100644
--- a/src/price.ts
+++ b/src/price.ts
@@ -1,6 +1,7 @@
 export function total(items: Item[]): number {
-  return items.reduce((sum, item) => sum + item.price, 0);
+  const cents = items.reduce((sum, item) => sum + item.price * 100, 0);
+  return Math.round(cents) / 100;
 }
 
 export function tax(amount: number): number {
   return amount * 0.19;
diff --git a/README.md b/README.md
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/README.md
@@ -0,0 +1,2 @@
+# Shop
+Prices are rounded to cents.
`;

export function fixtureData(): FixtureData {
  const waiting = session('11111111-1111-4111-8111-111111111111', { status: 'waiting_permission', state: 'waiting' });
  const tree = session('22222222-2222-4222-8222-222222222222', {
    title: 'Add French translations',
    status: 'idle',
    state: 'idle',
    activity: '31 tools (12 Edit, 10 Read, 9 Bash), $1.07',
    totalCostUsd: 1.07,
    workspace: {
      type: 'worktree',
      branch: 'claude/22222222',
      base: 'main',
      path: '/state/worktrees/22222222',
      state: 'open',
    },
    lastActiveAt: ago(400),
  });
  const failed = session('33333333-3333-4333-8333-333333333333', {
    title: 'Upgrade the build',
    status: 'error',
    state: 'error',
    activity: 'the hub stopped while it worked; reply to continue',
    owner: { id: 'token:ci', name: 'ci' },
    lastActiveAt: ago(7200),
  });
  return {
    me: admin(),
    sessions: [waiting, tree, failed],
    requests: [
      request('req-edit', waiting.sessionId, {
        toolName: 'Edit',
        input: {
          file_path: '/home/anna/shop/src/price.ts',
          old_string: '  return items.reduce((sum, item) => sum + item.price, 0);',
          new_string:
            '  const cents = items.reduce((sum, item) => sum + item.price * 100, 0);\n  return Math.round(cents) / 100;',
        },
        edit: { line: 12, before: ['', 'export function total(items: Item[]): number {'], after: ['}', ''] },
        alwaysAllows: 'Edit',
        createdAt: ago(300),
      }),
      request('req-bash', waiting.sessionId),
      request('req-question', tree.sessionId, {
        type: 'user_question',
        toolName: 'AskUserQuestion',
        createdAt: ago(60),
        input: {},
        questions: [
          {
            question: 'Which French should be used?',
            header: 'Language',
            multiSelect: false,
            options: [
              { label: 'fr-FR', description: 'As spoken in France' },
              { label: 'fr-CA', description: 'As spoken in Canada' },
            ],
          },
        ],
        session: { title: tree.title, cwd: tree.cwd, owner: tree.owner },
      }),
      request('req-plan', tree.sessionId, {
        type: 'plan_review',
        toolName: 'ExitPlanMode',
        input: { plan: PLAN },
        plan: PLAN,
        createdAt: ago(30),
        session: { title: tree.title, cwd: tree.cwd, owner: tree.owner },
      }),
    ],
    events: {
      [waiting.sessionId]: [
        event(
          1,
          'progress',
          { kind: 'prompt', text: 'The price test fails since Monday. Find out why and fix it.', messageId: 'u1' },
          900,
        ),
        event(
          2,
          'progress',
          {
            kind: 'init',
            tools: [],
            model: 'claude-opus-4-8',
            permissionMode: 'default',
            version: '2.1.325',
            cwd: '/home/anna/shop',
          },
          899,
        ),
        says(3, 'I look at the test first, then at **`src/price.ts`**.'),
        calls(4, 'tool1', 'Read', { file_path: '/home/anna/shop/test/price.test.ts' }),
        returns(5, 'tool1', '1\timport { total } from "../src/price.ts";\n2\ttest("total", …)'),
        calls(6, 'tool2', 'Bash', { command: 'npm test -- --run price' }),
        returns(7, 'tool2', 'Exit code 1\nexpected 0.30000000000000004 to be 0.3', true),
        calls(8, 'agent1', 'Agent', { description: 'Find every place that rounds', prompt: 'Search for rounding.' }),
        calls(9, 'tool3', 'Grep', { pattern: 'Math.round', path: '/home/anna/shop/src' }, 'agent1'),
        returns(10, 'tool3', 'src/invoice.ts:14', false, 'agent1'),
        says(11, 'Only the invoice rounds.', 'agent1'),
        returns(12, 'agent1', 'Only src/invoice.ts rounds.'),
        says(
          13,
          'The sum is built from floating point numbers. I will add the prices in cents:\n\n- `total` sums cents\n- the result is divided once',
        ),
        calls(14, 'tool4', 'Edit', { file_path: '/home/anna/shop/src/price.ts', old_string: 'a', new_string: 'b' }),
      ],
      [tree.sessionId]: [
        event(1, 'progress', { kind: 'prompt', text: 'Translate the shop into French.', messageId: 'u2' }, 800),
        says(2, 'Done. All 84 messages have a French text.'),
        event(3, 'result', {
          kind: 'result',
          subtype: 'success',
          result: {
            text: 'Done.',
            isError: false,
            interrupted: false,
            numTurns: 31,
            cumulativeCostUsd: 1.07,
            durationMs: 184_000,
            durationApiMs: 120_000,
            usage: {},
            modelUsage: {},
            permissionDenials: [],
          },
        }),
      ],
    },
    diffs: {
      [tree.sessionId]: { filesChanged: 2, insertions: 4, deletions: 1, diff: DIFF, totalBytes: DIFF.length },
    },
    details: {
      [tree.sessionId]: {
        result: {
          sessionId: tree.sessionId,
          result: 'Done.',
          isError: false,
          durationMs: 184_000,
          numTurns: 31,
          totalCostUsd: 1.07,
          sessionTotalTurns: 31,
          sessionTotalCostUsd: 1.07,
          work: {
            filesChanged: 12,
            insertions: 240,
            deletions: 8,
            commandsRun: 9,
            commandsFailed: 1,
            lastCheck: { command: 'npm test', exitCode: 0, afterLastEdit: true },
            problems: [
              {
                tool: 'Bash',
                what: 'git commit',
                outcome: 'failed',
                tail: 'fatal: unable to auto-detect email address',
              },
            ],
          },
        },
      },
    },
    audit: [
      {
        time: ago(20),
        kind: 'request',
        session: waiting.sessionId,
        principal: 'local',
        who: 'claude',
        what: 'Edit src/price.ts',
      },
      {
        time: ago(90),
        kind: 'decision',
        session: waiting.sessionId,
        principal: 'person:anna',
        by: 'Anna',
        who: 'human',
        what: 'Bash npm test',
        outcome: 'allow',
      },
      {
        time: ago(900),
        kind: 'start',
        session: waiting.sessionId,
        principal: 'local',
        who: 'caller',
        what: 'claude_code',
        details: { prompt: '52 chars, sha256 0123456789abcdef' },
      },
    ],
    rules: [
      {
        ...{ id: 'r1', decision: 'allow', tool: 'Bash', match: 'npm test', directory: '/work/app', enabled: true },
        ...{ createdBy: 'person', author: 'you', createdAt: ago(90_000), uses: 3, lastUsedAt: ago(60) },
        ...{ note: 'the tests', mayChange: true },
      },
      {
        ...{ id: 'r2', decision: 'deny', tool: 'Bash', match: 'git push *', enabled: true, inactive: 'author' },
        ...{ createdBy: 'token:t2', author: 'old laptop', createdAt: ago(900_000), uses: 0, mayChange: false },
      },
    ],
    packs: [
      {
        name: 'reading',
        description: 'Programs that print files.',
        rules: [{ decision: 'allow', tool: 'Bash', match: 'cat *' }],
      },
    ],
    replay: {
      ...{ considered: 40, matched: 3, allowed: 2, denied: 1, others: 0 },
      requests: [
        {
          ...{ requestId: 'q1', sessionId: 's', toolName: 'Bash', summary: 'npm test', decision: 'deny' },
          ...{ by: 'you', source: 'human', at: ago(500) },
        },
      ],
      warnings: ["It may run the project's own code."],
    },
    tokens: [
      {
        id: 't1',
        kind: 'token',
        name: 'ci',
        role: 'caller',
        attended: false,
        createdAt: ago(86_400),
        expiresAt: ago(-2_000_000),
        status: 'active',
      },
      {
        id: 't2',
        kind: 'token',
        name: 'old laptop',
        role: 'admin',
        attended: true,
        createdAt: ago(9_000_000),
        revokedAt: ago(800_000),
        status: 'revoked',
      },
      {
        id: 's1',
        kind: 'sign-in',
        name: 'Anna',
        role: 'admin',
        attended: true,
        createdAt: ago(600),
        expiresAt: ago(-42_000),
        status: 'active',
      },
    ],
  };
}
