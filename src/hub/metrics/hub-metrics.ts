import type { Engine } from '../../engine/engine.ts';
import type { EngineNotice } from '../../engine/notices.ts';
import { SESSION_STATES } from '../../schema/enums.ts';
import type { McpOperation } from '../../mcp/observe.ts';
import type { Store } from '../../store/contract.ts';
import { READERS } from '../api/rights.ts';
import type { Route } from '../http/route.ts';
import type { Notifier } from '../notify/notify.ts';
import { gaugeText, MetricRegistry, type Labels } from './registry.ts';

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
