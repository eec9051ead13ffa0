import { expect, test } from 'vitest';
import { isAtRest, transition, TRANSITIONS, type State, type StateEvent } from './state.ts';
import { SESSION_STATES } from '../../schema/enums.ts';

const EVENTS = Object.keys(TRANSITIONS) as StateEvent[];

/** Rows are states, columns are events as named in the header; `·` changes nothing. */
const TABLE = `
  state         started  work     next     asked    answered interrupt     rest  stop         fail   cancel
  starting      running  ·        ·        waiting  ·        interrupting  idle  interrupted  error  cancelled
  running       ·        ·        ·        waiting  ·        interrupting  idle  interrupted  error  cancelled
  waiting       ·        ·        ·        ·        running  interrupting  idle  interrupted  error  cancelled
  interrupting  ·        ·        running  ·        ·        ·             idle  interrupted  error  cancelled
  idle          ·        running  ·        waiting  ·        ·             ·     ·            error  cancelled
  interrupted   ·        running  ·        waiting  ·        ·             ·     ·            error  cancelled
  error         ·        running  ·        waiting  ·        ·             ·     ·            ·      cancelled
  cancelled     ·        ·        ·        ·        ·        ·             ·     ·            ·      ·`;

const [head = [], ...rows] = TABLE.trim()
  .split('\n')
  .map((line) => line.trim().split(/\s+/));

test('the table names every state and every event', () => {
  expect(rows.map(([state]) => state)).toEqual(SESSION_STATES);
  expect(head.slice(1)).toEqual(EVENTS);
});

const cells = rows.flatMap(([state, ...nexts]) =>
  nexts.map((next, index) => [state as State, head[index + 1] as StateEvent, next] as const),
);

test.each(cells)('%s, %s → %s', (state, event, next) => {
  expect(transition(state, event) ?? '·').toBe(next);
});

test('cancelled is final and at rest', () => {
  expect(EVENTS.filter((event) => transition('cancelled', event) !== undefined)).toEqual([]);
  expect(SESSION_STATES.filter(isAtRest)).toEqual(['idle', 'interrupted', 'error', 'cancelled']);
});
