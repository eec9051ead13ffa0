import type { Engine } from '../../engine/engine.ts';
import type { EngineNotice } from '../../engine/notices.ts';
import { SESSION_STATES } from '../../schema/enums.ts';
import type { McpOperation } from '../../mcp/observe.ts';
import type { Store } from '../../store/contract.ts';
import { READERS } from '../api/rights.ts';
import type { Route } from '../http/route.ts';
import type { Notifier } from '../notify/notify.ts';

const MAX_COUNTED = 1_000;

export interface MetricsSources {
  readonly engine: Pick<Engine, 'sessions' | 'stream'>;
  readonly store: Pick<Store, 'inbox'>;
  readonly version: string;
  /** Once it runs. */
  notifier?(): Pick<Notifier, 'counts' | 'pending'> | undefined;
}

/** OpenTelemetry names where they exist (`mcp.server.*`, `http.server.*`), in Prometheus notation. */
export class HubMetrics {
  readonly #sources: MetricsSources;
  readonly #registry = new MetricRegistry();
  readonly #operations = this.#registry.histogram(
    'mcp_server_operation_duration_seconds',
    'MCP request duration as observed on the receiver, until the result was sent.',
  );
  readonly #connections = this.#registry.histogram(
    'mcp_server_session_duration_seconds',
    'The duration of the MCP session as observed on the MCP server.',
  );
  readonly #http = this.#registry.histogram('http_server_request_duration_seconds', 'Duration of API requests.');
  readonly #cost = this.#registry.counter('claude_code_cost_usd_total', 'Cost of sessions, in US dollars.');
  readonly #turns = this.#registry.counter('claude_code_turns_total', 'Turns of the model.');
  readonly #settled = this.#registry.counter('claude_code_requests_settled_total', 'Settled requests.');
  readonly #totals = new Map<string, { turns: number; costUsd: number }>();

  constructor(sources: MetricsSources) {
    this.#sources = sources;
    sources.engine.stream.subscribe((notice) => this.#noticed(notice));
  }

  /** For the servers of one kind of transport: `pipe` for the local socket, `tcp` for HTTP. */
  observer(transport: 'pipe' | 'tcp'): (operation: McpOperation) => void {
    return (operation) => {
      const network: Labels = { network_transport: transport };
      if (operation.kind === 'connection') return this.#connections.observe(operation.seconds, network);
      const { method, tool, error, seconds } = operation;
      this.#operations.observe(seconds, {
        mcp_method_name: method,
        ...(tool !== undefined && { gen_ai_tool_name: tool, gen_ai_operation_name: 'execute_tool' }),
        ...(error !== undefined && { error_type: error }),
        ...network,
      });
    };
  }

  requestServed(method: string, route: string, status: number, seconds: number): void {
    this.#http.observe(seconds, {
      http_request_method: method,
      http_route: route,
      http_response_status_code: String(status),
    });
  }

  route(): Route {
    return {
      method: 'GET',
      path: '/metrics',
      roles: READERS,
      handler: async () => ({
        status: 200,
        text: await this.text(),
        contentType: 'text/plain; version=0.0.4; charset=utf-8',
      }),
    };
  }

  async text(): Promise<string> {
    const { engine, store, version } = this.#sources;
    const { sessions } = engine;
    const open = await store.inbox({ limit: MAX_COUNTED });
    const notes = this.#sources.notifier?.();
    const { rss } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const byState = SESSION_STATES.map((state): [Labels, number] => [
      { state },
      sessions.filter((session) => session.state === state).length,
    ]);
    return [
      gaugeText('claude_code_hub_info', 'The version of this hub.', [[{ version }, 1]]),
      gaugeText('claude_code_sessions', 'Sessions loaded in this hub.', byState),
      gaugeText('claude_code_processes', 'Running Claude Code processes.', [
        [{}, sessions.filter(({ hasProcess }) => hasProcess).length],
      ]),
      gaugeText('claude_code_requests_open', `Requests waiting for an answer, up to ${MAX_COUNTED}.`, [
        [{}, open.items.length],
      ]),
      ...(notes
        ? [
            gaugeText('claude_code_notifications_pending', 'Undelivered notifications.', [[{}, notes.pending]]),
            gaugeText(
              'claude_code_notifications_total',
              'Notification attempts by outcome; failed ones are retried.',
              Object.entries(notes.counts).map(([outcome, count]): [Labels, number] => [{ outcome }, count]),
              'counter',
            ),
          ]
        : []),
      gaugeText('process_resident_memory_bytes', 'Resident memory of the hub itself.', [[{}, rss]]),
      gaugeText('process_cpu_seconds_total', 'CPU time of the hub itself.', [[{}, (user + system) / 1e6]], 'counter'),
      gaugeText('process_uptime_seconds', 'How long the hub has been running.', [[{}, process.uptime()]]),
      this.#registry.text(),
    ].join('');
  }

  #noticed(notice: EngineNotice): void {
    switch (notice.kind) {
      case 'settled':
        this.#settled.add(1, { decision: notice.outcome.decision.behavior, source: notice.outcome.source });
        return;
      case 'added':
      case 'changed': {
        const { sessionId: id } = notice;
        const { turns, costUsd } = notice.totals;
        // What a session brought along was spent earlier.
        const before = this.#totals.get(id) ?? { turns, costUsd };
        this.#totals.set(id, { turns, costUsd });
        if (turns > before.turns) this.#turns.add(turns - before.turns);
        if (costUsd > before.costUsd) this.#cost.add(costUsd - before.costUsd);
        return;
      }
      case 'forgotten':
        this.#totals.delete(notice.sessionId);
        return;
      default:
        return;
    }
  }
}

/**
 * Metrics in the Prometheus text format (0.0.4). Names and labels come from this program, label values from anywhere.
 */

type Labels = Readonly<Record<string, string>>;

/** Seconds; a call can take milliseconds, or wait for minutes. */
const BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300] as const;
/** Label values that callers choose must not fill the memory. */
const MAX_SERIES = 1_000;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  samples(): Iterable<string>;
}

class MetricRegistry {
  readonly #families: Family[] = [];

  counter(name: string, help: string): Counter {
    const counter = new Counter(name);
    this.#families.push({ name, help, type: 'counter', samples: () => counter.samples() });
    return counter;
  }

  histogram(name: string, help: string): Histogram {
    const histogram = new Histogram(name);
    this.#families.push({ name, help, type: 'histogram', samples: () => histogram.samples() });
    return histogram;
  }

  text(): string {
    return this.#families.map(familyText).join('');
  }
}

/** Computed on demand. */
function gaugeText(
  name: string,
  help: string,
  values: Iterable<readonly [Labels, number]>,
  type: 'gauge' | 'counter' = 'gauge',
): string {
  return familyText({
    name,
    help,
    type,
    samples: () => [...values].map(([labels, value]) => sample(name, labels, value)),
  });
}

class Counter {
  readonly #name: string;
  readonly #values = new Map<string, { labels: Labels; value: number }>();

  constructor(name: string) {
    this.#name = name;
  }

  add(amount: number, labels: Labels = {}): void {
    const key = JSON.stringify(labels);
    const known = this.#values.get(key);
    if (known) known.value += amount;
    else if (this.#values.size < MAX_SERIES) this.#values.set(key, { labels, value: amount });
  }

  *samples(): Generator<string> {
    for (const { labels, value } of this.#values.values()) yield sample(this.#name, labels, value);
  }
}

class Histogram {
  readonly #name: string;
  readonly #series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();

  constructor(name: string) {
    this.#name = name;
  }

  observe(seconds: number, labels: Labels): void {
    const key = JSON.stringify(labels);
    let series = this.#series.get(key);
    if (!series) {
      if (this.#series.size >= MAX_SERIES) return;
      series = { labels, counts: BUCKETS.map(() => 0), sum: 0, count: 0 };
      this.#series.set(key, series);
    }
    const bucket = BUCKETS.findIndex((most) => seconds <= most);
    if (bucket >= 0) series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
    series.count++;
  }

  *samples(): Generator<string> {
    for (const { labels, counts, sum, count } of this.#series.values()) {
      let below = 0;
      for (const [index, most] of BUCKETS.entries()) {
        below += counts[index] ?? 0;
        yield sample(`${this.#name}_bucket`, { ...labels, le: String(most) }, below);
      }
      yield sample(`${this.#name}_bucket`, { ...labels, le: '+Inf' }, count);
      yield sample(`${this.#name}_sum`, labels, sum);
      yield sample(`${this.#name}_count`, labels, count);
    }
  }
}

function familyText(family: Family): string {
  const { name, help, type } = family;
  return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`, ...family.samples(), ''].join('\n');
}

function sample(name: string, labels: Labels, value: number): string {
  const shown = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`);
  return `${name}${shown.length === 0 ? '' : `{${shown.join(',')}}`} ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
