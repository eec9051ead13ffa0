import parsePrometheus from 'parse-prometheus-text-format';
import { expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { NoticeStream, type EngineNotice } from '../../src/engine/notices.ts';
import { HubMetrics } from '../../src/hub/metrics/hub-metrics.ts';
import { ask, put, request, session } from '../store/rows.ts';
import { STORES } from '../store/stores.ts';

/** Metrics over a store and an engine with the given sessions. */
async function open(sessions: object[] = []) {
  const store = await STORES.sqlite();
  const { hub, fence } = await store.acquireLease('hub-1', 60_000, {});
  const stream = new NoticeStream<EngineNotice>();
  const metrics = new HubMetrics({
    engine: { sessions, stream } as unknown as Pick<Engine, 'sessions' | 'stream'>,
    store,
    version: '1.2.3',
    notifier: () => ({ pending: 2, counts: { delivered: 5, failed: 1, dropped: 0 } }),
  });
  const families = async () => new Map(parsePrometheus(await metrics.text()).map((family) => [family.name, family]));
  /** The parser merges histograms with different labels; without the type line it keeps the samples separate. */
  const series = async (prefix: string) => {
    const untyped = (await metrics.text()).replaceAll(/^# TYPE .* histogram\n/gm, '');
    return parsePrometheus(untyped)
      .filter(({ name }) => name.startsWith(prefix))
      .flatMap(({ name, metrics: samples }) => samples.map((sample) => ({ name, ...sample })));
  };
  return { store, by: { hub, fence }, stream, metrics, families, series };
}

test('a Prometheus parser can read the metrics, which follow the MCP naming conventions', async () => {
  const { metrics, families, series } = await open();
  const observe = metrics.observer('tcp');
  observe({ kind: 'request', method: 'tools/call', tool: 'claude_code', seconds: 0.3 });
  observe({ kind: 'request', method: 'tools/call', tool: 'claude_code', seconds: 40 });
  observe({ kind: 'request', method: 'tools/call', tool: 'claude_code', error: 'tool_error', seconds: 0.001 });
  observe({ kind: 'request', method: 'tools/list', seconds: 0.001 });
  observe({ kind: 'connection', seconds: 12 });
  const found = await families();
  expect(found.get('mcp_server_operation_duration_seconds')?.type).toBe('HISTOGRAM');
  expect(found.get('mcp_server_session_duration_seconds')).toMatchObject({
    type: 'HISTOGRAM',
    metrics: [{ buckets: { '10': '0', '30': '1', '+Inf': '1' } }],
  });
  const operations = await series('mcp_server_operation_duration_seconds');
  const call = { mcp_method_name: 'tools/call', gen_ai_tool_name: 'claude_code', network_transport: 'tcp' };
  const counts = operations.filter(({ name }) => name.endsWith('_count'));
  expect(counts).toMatchObject([
    { labels: call, value: '2' },
    { labels: { ...call, error_type: 'tool_error' }, value: '1' },
    { labels: { mcp_method_name: 'tools/list', network_transport: 'tcp' }, value: '1' },
  ]);
  const below = (le: string) =>
    operations.find(({ name, labels }) => name.endsWith('_bucket') && labels?.['le'] === le)?.value;
  expect(['0.2', '0.5', '30', '60', '+Inf'].map(below)).toEqual(['0', '1', '1', '2', '2']);
  expect(operations.find(({ name }) => name.endsWith('_sum'))?.value).toBe('40.3');
});

test('sessions, open requests and notifications are counted on each scrape', async () => {
  const world = await open([
    { state: 'running', hasProcess: true },
    { state: 'idle', hasProcess: false },
    { state: 'idle', hasProcess: true },
  ]);
  await world.store.write([put(session('s1', world.by)), ask(request('s1', 'r1'))], world.by);
  const found = await world.families();
  const value = (name: string, labels: Record<string, string> = {}): string | undefined =>
    found
      .get(name)
      ?.metrics.find((metric) => Object.entries(labels).every(([label, text]) => metric.labels?.[label] === text))
      ?.value;
  expect(value('claude_code_sessions', { state: 'idle' })).toBe('2');
  expect(value('claude_code_sessions', { state: 'error' })).toBe('0');
  expect(value('claude_code_processes')).toBe('2');
  expect(value('claude_code_requests_open')).toBe('1');
  expect(value('claude_code_notifications_pending')).toBe('2');
  expect(value('claude_code_notifications_total', { outcome: 'delivered' })).toBe('5');
  expect(value('claude_code_hub_info', { version: '1.2.3' })).toBe('1');
  expect(Number(value('process_resident_memory_bytes'))).toBeGreaterThan(1e6);
});

test('cost, turns and decisions are counted, without what a session already had when it was added', async () => {
  const { stream, families } = await open();
  const one = { sessionId: 's1', owner: 'local', atRest: true, totals: { turns: 3, costUsd: 1 } };
  const tell = (notice: object): void => stream.tell({ ...one, ...notice } as EngineNotice);
  tell({ kind: 'added' });
  one.totals = { turns: 5, costUsd: 1.5 };
  tell({ kind: 'changed' });
  tell({ kind: 'changed' });
  for (const behavior of ['allow', 'deny', 'deny'])
    tell({ kind: 'settled', request: {}, outcome: { decision: { behavior }, source: 'human' } });
  const found = await families();
  expect(found.get('claude_code_cost_usd_total')?.metrics).toMatchObject([{ value: '0.5' }]);
  expect(found.get('claude_code_turns_total')?.metrics).toMatchObject([{ value: '2' }]);
  expect(found.get('claude_code_requests_settled_total')?.metrics).toMatchObject([
    { labels: { decision: 'allow', source: 'human' }, value: '1' },
    { labels: { decision: 'deny', source: 'human' }, value: '2' },
  ]);
});

test('odd label values do not break the format, and the number of series is bounded', async () => {
  const { metrics, series } = await open();
  const observe = metrics.observer('pipe');
  const odd = 'a "quoted"\nback\\slash';
  observe({ kind: 'request', method: odd, seconds: 1 });
  for (let index = 0; index < 2_000; index++) observe({ kind: 'request', method: `m${index}`, seconds: 1 });
  const counts = await series('mcp_server_operation_duration_seconds_count');
  expect(counts).toHaveLength(1_000);
  expect(counts[0]?.labels).toEqual({ mcp_method_name: odd, network_transport: 'pipe' });
});
