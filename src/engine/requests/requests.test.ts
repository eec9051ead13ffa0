import fc from 'fast-check';
import { expect, test } from 'vitest';
import { permissionAsk } from '../../../test/mcp/forms/open-request.ts';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import type { Decision, PermissionAsk } from '../../driver/permission-ask.ts';
import { kindOf, recordOf, RequestBook, type OpenRequest, type Outcome } from './requests.ts';

const ALLOW: Decision = { behavior: 'allow' };
const DENY: Decision = { behavior: 'deny', message: 'no', interrupt: true };
const TIMEOUT_MS = 1_000;
const DAY_MS = 86_400_000;

function askOf(requestId: string, withdrawn: AbortSignal, toolName = 'Bash'): PermissionAsk {
  return permissionAsk(toolName, { command: 'touch a' }, { requestId, toolUseId: `tool-${requestId}`, withdrawn });
}

/** A request book that records every request it opens, outcome it reports and decision it makes. */
class Bench {
  readonly clock = new ManualClock();
  readonly opened: string[] = [];
  readonly settled = new Map<string, Outcome[]>();
  readonly decided = new Map<string, Decision[]>();
  readonly book = new RequestBook(this.clock, {
    onOpened: ({ id }) => this.opened.push(id),
    onSettled: ({ id }, outcome) => this.settled.set(id, [...(this.settled.get(id) ?? []), outcome]),
  });
  readonly #withdraw = new Map<string, AbortController>();

  ask(id: string, timeoutMs = TIMEOUT_MS): void {
    const controller = new AbortController();
    this.#withdraw.set(id, controller);
    void this.book
      .open(askOf(id, controller.signal), timeoutMs)
      .then((decision) => this.decided.set(id, [...(this.decided.get(id) ?? []), decision]));
  }

  withdraw(id: string): void {
    this.#withdraw.get(id)?.abort();
  }
}

type Step =
  | { do: 'ask'; timeoutMs: number }
  | { do: 'answer' | 'answerAsHuman' | 'withdraw'; which: number }
  | { do: 'pass'; ms: number }
  | { do: 'cancel' | 'shutdown' | 'crash' };

const which = fc.nat({ max: 9 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('ask' as const), timeoutMs: fc.constantFrom(0, 500, TIMEOUT_MS) }),
  fc.record({ do: fc.constantFrom('answer' as const, 'answerAsHuman' as const, 'withdraw' as const), which }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 499, 500, 1_000) }),
  fc.record({ do: fc.constantFrom('cancel' as const, 'shutdown' as const, 'crash' as const) }),
);

test('under any concurrency each request has exactly one outcome, and it is the reported one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const bench = new Bench();
      const { book, clock } = bench;
      for (const [index, each] of steps.entries()) {
        const openBefore = book.all.map(({ id }) => id);
        const target = 'which' in each ? bench.opened[each.which % Math.max(1, bench.opened.length)] : undefined;
        switch (each.do) {
          case 'ask':
            bench.ask(`request-${String(index)}`, each.timeoutMs);
            break;
          case 'answer':
          case 'answerAsHuman':
            if (target !== undefined) {
              const found = book.settle(target, ALLOW, each.do === 'answer' ? 'caller' : 'human');
              expect(found !== undefined).toBe(openBefore.includes(target));
            }
            break;
          case 'withdraw':
            if (target !== undefined) bench.withdraw(target);
            break;
          case 'pass':
            clock.advance(each.ms);
            break;
          case 'cancel':
          case 'crash':
            book.settleAll(DENY, 'cancel');
            expect(book.size).toBe(0);
            break;
          case 'shutdown':
            book.settleAll(DENY, 'shutdown');
            break;
        }
        // An open request has no outcome yet, a closed one exactly one.
        for (const id of bench.opened) {
          expect(bench.settled.get(id)?.length ?? 0).toBe(book.find(id) === undefined ? 1 : 0);
        }
      }
      book.settleAll(DENY, 'shutdown');
      await Promise.resolve();
      expect(clock.alarms).toBe(0);
      for (const id of bench.opened) {
        expect(bench.decided.get(id)).toEqual(bench.settled.get(id)?.map(({ decision }) => decision));
        expect(bench.decided.get(id)).toHaveLength(1);
      }
    }),
    { numRuns: 500 },
  );
});

test('settling requests from within onSettled does not confuse the book', () => {
  const clock = new ManualClock();
  const settled: string[] = [];
  const book: RequestBook = new RequestBook(clock, {
    onOpened: () => undefined,
    onSettled: ({ id }: OpenRequest, { source }) => {
      settled.push(`${id} ${source}`);
      expect(book.settle(id, ALLOW, 'caller')).toBeUndefined();
      book.settleAll(DENY, 'cancel');
    },
  });
  for (const id of ['a', 'b', 'c']) void book.open(askOf(id, new AbortController().signal), 100);
  clock.advance(100);
  expect(settled).toEqual(['a timeout', 'b cancel', 'c cancel']);
});

test('a timed-out request is denied with a message that says so', async () => {
  const bench = new Bench();
  bench.ask('late', 5_000);
  bench.clock.advance(4_999);
  expect(bench.book.find('late')?.expiresAt).toBe(5_000);
  bench.clock.advance(1);
  await Promise.resolve();
  expect(bench.decided.get('late')).toMatchObject([
    { behavior: 'deny', message: expect.stringMatching(/nobody answered.* 5 s.*not refused/is) },
  ]);
});

test('a request with timeout 0 never expires', () => {
  const bench = new Bench();
  bench.ask('patient', 0);
  bench.clock.advance(1e12);
  expect(bench.book.find('patient')).toMatchObject({ expiresAt: undefined });
});

test('a request withdrawn before it could be opened is settled', () => {
  const bench = new Bench();
  const gone = AbortSignal.abort();
  void bench.book.open(askOf('gone', gone), 0);
  expect(bench.book.size).toBe(0);
  expect(bench.settled.get('gone')).toMatchObject([{ source: 'cancel', decision: { behavior: 'deny' } }]);
});

test('a process that goes on keeps what it asks again, however late that arrives; what it no longer asks is withdrawn', async () => {
  const before = new Bench();
  before.ask('late');
  before.ask('forgotten');
  const { book, settled } = new Bench();
  for (const request of before.book.all) book.restore(recordOf(request));
  book.expectAll();
  book.withdrawUnasked(new Set(['late']));
  expect(settled.get('forgotten')).toMatchObject([{ source: 'cancel' }]);
  const answer = book.reattach(askOf('late', new AbortController().signal));
  book.settle('late', ALLOW, 'caller');
  expect(await answer).toEqual(ALLOW);
});

test('a decision that comes before a process has asked again is what it hears when it does', async () => {
  const before = new Bench();
  before.ask('decided');
  const { book, settled } = new Bench();
  for (const request of before.book.all) book.restore(recordOf(request));
  book.expectAll();
  book.settle('decided', ALLOW, 'human');
  book.withdrawUnasked(new Set(['decided']));
  expect(book.has('decided')).toBe(true);
  expect(await book.reattach(askOf('decided', new AbortController().signal))).toEqual(ALLOW);
  expect(settled.get('decided')).toHaveLength(1);
});

test.each([
  ['ExitPlanMode', 'plan_review'],
  ['AskUserQuestion', 'user_question'],
  ['Bash', 'permission'],
  ['constructor', 'permission'],
])('%s is a %s', (toolName, kind) => {
  expect(kindOf(toolName)).toBe(kind);
});

test('a clock that is set shows the time at which a request will really expire', () => {
  const bench = new Bench();
  bench.ask('a');
  const { clock, book, settled } = bench;
  clock.setWallTime(DAY_MS);
  clock.advance(TIMEOUT_MS / 4);
  const left = (): number => (book.find('a')?.expiresAt ?? 0) - clock.wallTime();
  expect(left()).toBe((TIMEOUT_MS * 3) / 4);
  expect(recordOf(book.find('a')!).expiresAt).toBe(DAY_MS + TIMEOUT_MS);
  clock.advance((TIMEOUT_MS * 3) / 4);
  expect(settled.get('a')).toMatchObject([{ source: 'timeout' }]);
});

test('a restored request has no more time than it ever had, even if the clock was set back meanwhile', () => {
  const before = new Bench();
  before.ask('a');
  const { book, settled, clock } = new Bench();
  book.restore({ ...recordOf(before.book.find('a')!), createdAt: DAY_MS, expiresAt: DAY_MS + TIMEOUT_MS });
  clock.advance(TIMEOUT_MS);
  expect(settled.get('a')).toMatchObject([{ source: 'timeout' }]);
});
