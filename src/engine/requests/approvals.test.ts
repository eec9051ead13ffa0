import { describe, expect, it, test } from 'vitest';
import { permissionAsk } from '../../../test/mcp/forms/open-request.ts';
import { ManualClock } from '../../../test/harness/manual-clock.ts';
import type { Settings } from '../../config/load-settings.ts';
import {
  Approvals,
  FORM_LIFETIME_MS,
  type Asker,
  type AskingSession,
  type ConnectedClient,
  type FormEnd,
} from './approvals.ts';
import type { RequestRecord } from '../../schema/events.ts';
import type { Principal } from '../rules/access.ts';
import { RequestBook, type OpenRequest } from './requests.ts';
import { NoticeStream, type SessionNotice } from '../notices.ts';

type Mode = Settings['approvals'];
type Forms = 'pushed' | 'by call' | 'none';

const principal = (id: string): Principal => ({ id, name: id, kind: 'program', role: 'caller', attended: true });
const alice = principal('alice');
const bob = principal('bob');

interface TestClient extends ConnectedClient {
  readonly shown: string[];
}

function clientOf(owner: Principal, forms: Forms = 'pushed'): TestClient {
  const shown: string[] = [];
  // Never settles: the test reports the form's end itself.
  const showForm = (_: Asker, { id }: RequestRecord): Promise<never> => {
    shown.push(id);
    return new Promise(() => undefined);
  };
  return { principal: owner, showsForms: forms !== 'none', shown, ...(forms === 'pushed' && { showForm }) };
}

/** A session owned by Alice that can open requests, in one approval mode. */
function world(mode: Mode, client?: ConnectedClient, unanswerable?: 'refused' | 'kept') {
  const clock = new ManualClock();
  const approvals = new Approvals(clock, unanswerable);
  const outcomes: string[] = [];
  const book = new RequestBook(clock, {
    onOpened: () => undefined,
    onSettled: (_, { decision, source }) =>
      outcomes.push(`${decision.behavior} ${source}${decision.behavior === 'deny' ? `: ${decision.message}` : ''}`),
  });
  let changes = 0;
  const notices = new NoticeStream<SessionNotice>();
  notices.subscribe(() => changes++);
  const session: AskingSession = {
    id: 'session',
    options: {},
    owner: alice,
    client,
    approvals: mode,
    notices,
    findRequest: (id) => book.find(id),
    checkFresh: () => Promise.resolve(),
    respond: (id, { decision, message = '' }, source) => {
      if (message === 'unfit') throw new Error('the answer does not fit');
      return book.settle(id, decision === 'allow' ? { behavior: 'allow' } : { behavior: 'deny', message }, source)!;
    },
    decide: (id, decision, source) => void book.settle(id, decision, source),
  };
  const ask = (id = 'r1'): OpenRequest => {
    void book.open({ ...permissionAsk('Bash', { command: 'ls' }), requestId: id }, 0, undefined);
    const request = book.find(id)!;
    approvals.requested(session, request);
    return request;
  };
  return { approvals, book, clock, session, outcomes, ask, changes: () => changes };
}

test('when requests are kept, a closed form is shown again to clients that connect later', async () => {
  const { approvals, session, outcomes, ask } = world('human', undefined, 'kept');
  const [first, second] = [clientOf(alice), clientOf(alice)];
  approvals.connect(first);
  const request = ask();
  await approvals.formEnded(first, session, request, { kind: 'closed', why: 'the form was closed' });
  expect(outcomes).toEqual([]);
  approvals.connect(second);
  approvals.requested(session, request);
  approvals.requested(session, request);
  expect([first.shown, second.shown]).toEqual([['r1'], ['r1']]);
});

test('when only a person may decide, forms go only to attended clients', () => {
  const script = clientOf({ ...alice, attended: false });
  for (const [mode, asked] of [
    ['human', []],
    ['auto', ['r1']],
  ] as const) {
    const { approvals, ask } = world(mode, undefined, 'kept');
    approvals.connect(script);
    ask();
    expect(script.shown).toEqual(asked);
  }
});

describe('who may decide', () => {
  test.each<[Mode, boolean]>([
    ['auto', true],
    ['caller', true],
    ['human', false],
  ])('%s: caller may decide: %j', (mode, may) => {
    const { approvals } = world(mode);
    expect(approvals.callerDecides({ approvals: mode })).toBe(may);
    const check = expect(() => approvals.checkCallerMayAnswer({ approvals: mode }));
    if (may) check.not.toThrow();
    else check.toThrow('CLAUDE_CODE_MCP_APPROVALS=human');
  });
});

describe('a new request', () => {
  // What the owner's client can show → whether the request is shown at once, holds a waiting call, or is refused.
  test.each<[Mode, Forms, { shown: boolean; holds: boolean; refused: boolean }]>([
    ['auto', 'pushed', { shown: true, holds: true, refused: false }],
    ['auto', 'by call', { shown: false, holds: false, refused: false }],
    ['auto', 'none', { shown: false, holds: false, refused: false }],
    ['caller', 'pushed', { shown: false, holds: false, refused: false }],
    ['caller', 'by call', { shown: false, holds: false, refused: false }],
    ['human', 'pushed', { shown: true, holds: true, refused: false }],
    ['human', 'by call', { shown: false, holds: true, refused: false }],
    ['human', 'none', { shown: false, holds: true, refused: true }],
  ])('%s, forms %s: %j', (mode, forms, expected) => {
    const client = clientOf(alice, forms);
    const { approvals, session, ask, outcomes } = world(mode, client);
    approvals.connect(client);
    const request = ask();
    expect({
      shown: client.shown.length > 0,
      holds: approvals.holdsWait(session, request),
      refused: outcomes.some((outcome) => /^deny policy: .*cannot show a form/.test(outcome)),
    }).toEqual(expected);
    expect(approvals.isAskingPerson(request)).toBe(expected.shown);
  });

  it.each<Mode>(['auto', 'human'])('%s: is never shown to another principal’s client', (mode) => {
    const [hers, his] = [clientOf(alice), clientOf(bob)];
    const { approvals, session, ask, book } = world(mode, hers);
    for (const client of [hers, his, his]) approvals.connect(client);
    const request = ask();
    expect([hers.shown, his.shown]).toEqual([['r1'], []]);
    expect(approvals.canAsk(his, session, request)).toBe(false);
    expect(approvals.beginForm(his, session, request)).toBe(false);
    // Not even after Alice's client has disconnected.
    approvals.disconnect(hers);
    expect(his.shown).toEqual([]);
    expect(book.size).toBe(mode === 'auto' ? 1 : 0);
  });

  it('is shown on the connection that started the session, or on the owner’s others once that has closed', () => {
    const [first, second, starter] = [clientOf(alice), clientOf(alice), clientOf(alice)];
    const { approvals, ask, outcomes } = world('human', starter);
    for (const client of [first, second, starter]) approvals.connect(client);
    const request = ask();
    expect([first.shown, second.shown, starter.shown]).toEqual([[], [], ['r1']]);
    approvals.disconnect(starter);
    approvals.disconnect(first);
    expect([first.shown, second.shown]).toEqual([['r1'], ['r1']]);
    expect(approvals.isAskingPerson(request)).toBe(true);
    expect(outcomes).toEqual([]);
    ask('r2');
    expect(second.shown).toEqual(['r1', 'r2']);
  });
});

describe('a form', () => {
  const allow: FormEnd = { kind: 'answered', answer: { decision: 'allow' } };
  const unfit: FormEnd = { kind: 'answered', answer: { decision: 'deny', message: 'unfit' } };
  const closed: FormEnd = { kind: 'closed', why: 'it was closed' };
  const lost: FormEnd = { kind: 'lost', why: 'it failed' };
  const left = (why: string): string[] => [
    expect.stringContaining(`deny policy: Only a person may decide this here, and ${why}`),
  ];

  test.each<[Mode, string, FormEnd, { outcomes: string[]; holds: boolean }]>([
    ['auto', 'answered', allow, { outcomes: ['allow human'], holds: false }],
    ['auto', 'answered with an invalid answer', unfit, { outcomes: [], holds: false }],
    ['auto', 'closed', closed, { outcomes: [], holds: false }],
    ['auto', 'lost', lost, { outcomes: [], holds: false }],
    ['human', 'answered', allow, { outcomes: ['allow human'], holds: true }],
    ['human', 'answered with an invalid answer', unfit, { outcomes: left('the answer does not fit'), holds: true }],
    ['human', 'closed', closed, { outcomes: left('it was closed'), holds: true }],
    ['human', 'lost', lost, { outcomes: left('it failed'), holds: true }],
  ])('%s: %s', async (mode, _, end, expected) => {
    const client = clientOf(alice);
    const { approvals, ask, outcomes, session, changes, clock } = world(mode, client);
    approvals.connect(client);
    const request = ask();
    const before = changes();
    await approvals.formEnded(client, session, request, end);
    expect({ outcomes, holds: approvals.holdsWait(session, request) }).toEqual(expected);
    // Waiting calls check again.
    if (expected.outcomes.length === 0) expect(changes()).toBeGreaterThan(before);
    expect(approvals.isAskingPerson(request)).toBe(false);
    // The form is not shown again, and no timer is left.
    expect(approvals.beginForm(client, session, request)).toBe(false);
    expect(client.shown).toEqual(['r1']);
    expect(clock.alarms).toBe(0);
  });

  it.each<Mode>(['auto', 'human'])(
    '%s: stops blocking after ten minutes, but a late answer still counts',
    async (mode) => {
      const client = clientOf(alice);
      const { approvals, ask, outcomes, session, clock, changes } = world(mode, client);
      approvals.connect(client);
      const request = ask();
      clock.advance(FORM_LIFETIME_MS - 1);
      expect(approvals.isAskingPerson(request)).toBe(true);
      const before = changes();
      clock.advance(1);
      expect(changes()).toBeGreaterThan(before);
      expect(approvals.isAskingPerson(request)).toBe(false);
      expect(approvals.holdsWait(session, request)).toBe(mode === 'human');
      expect(outcomes).toEqual([]);
      await approvals.formEnded(client, session, request, allow);
      expect(outcomes).toEqual(['allow human']);
    },
  );

  it('of a waiting call is claimed once, holds all other calls, and is released if it was never sent', async () => {
    const [client, other] = [clientOf(alice, 'by call'), clientOf(alice, 'by call')];
    const { approvals, ask, session, outcomes } = world('auto', client);
    approvals.connect(client);
    const request = ask();
    expect(approvals.beginForm(client, session, request)).toBe(true);
    expect(approvals.beginForm(client, session, request)).toBe(false);
    expect(approvals.beginForm(other, session, request)).toBe(false);
    expect(approvals.holdsWait(session, request)).toBe(true);
    approvals.withdrawForm(client, session, request);
    expect(approvals.holdsWait(session, request)).toBe(false);
    expect(approvals.beginForm(client, session, request)).toBe(true);
    // An answer from a client that did not claim the form is ignored.
    await approvals.formEnded(other, session, request, allow);
    expect(outcomes).toEqual([]);
    await approvals.formEnded(client, session, request, allow);
    expect(outcomes).toEqual(['allow human']);
  });

  it('answered after the request was settled changes nothing', async () => {
    const client = clientOf(alice);
    const { approvals, ask, session, outcomes, clock } = world('auto', client);
    approvals.connect(client);
    const request = ask();
    session.respond('r1', { decision: 'deny', message: 'no' }, 'caller');
    expect(approvals.isAskingPerson(request)).toBe(false);
    expect(clock.alarms).toBe(0);
    await approvals.formEnded(client, session, request, allow);
    approvals.disconnect(client);
    expect(approvals.beginForm(client, session, request)).toBe(false);
    expect(outcomes).toEqual(['deny caller: no']);
  });
});
