/** What is open beside the attached callers of a hub that is killed: HTTP clients, a stream, a page with a person, rules. */

import { ok, strictEqual } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Browser, Page } from 'playwright-core';
import { openBrowser, openPage } from '../browser/browser.ts';
import { pressOn, signInWith } from '../browser/page-steps.ts';
import { builtServer } from '../harness/built-server.ts';
import { connectClient, ERAS } from '../harness/connect-client.ts';
import { eventually } from '../harness/eventually.ts';
import type { Json } from '../harness/json.ts';
import type { Harness } from '../harness/open-harness.ts';
import { callTool } from '../harness/tool-call.ts';
import type { Caller } from './hub-soak.ts';

/** Tall enough for the requests of all sessions: what is far off the screen is not in the page. */
const TALL = { width: 1000, height: 6_000 };
const RETRY_MS = 100;
const PRESS_MS = 3_000;
const PATIENCE_MS = 120_000;
/** A client whose stream a killed hub cut off waits for all of it. */
const HTTP_CALL_MS = 20_000;

export class HubWatchers {
  /** MCP clients over HTTP, one for each protocol era. */
  readonly overHttp: readonly Caller[];
  readonly #clients: readonly Client[];
  readonly #api: PatientApi;
  readonly #stream: StreamReader;
  readonly #browser: Browser;
  readonly #page: Page;
  readonly #errors: readonly string[];
  #pressing: Promise<unknown> = Promise.resolve();

  private constructor(
    api: PatientApi,
    { browser, page, errors }: { browser: Browser; page: Page; errors: readonly string[] },
    clients: readonly Client[],
  ) {
    this.#api = api;
    this.#browser = browser;
    this.#page = page;
    this.#errors = errors;
    this.#clients = clients;
    this.overHttp = clients.map(callerOf);
    this.#stream = new StreamReader(api);
  }

  static async open(h: Harness): Promise<HubWatchers> {
    const [you, program] = [await createToken(h, 'you', 'admin'), await createToken(h, 'program', 'caller')];
    const clients = await Promise.all(
      ERAS.map((era) => {
        const requestInit = { headers: { authorization: `Bearer ${program}` } };
        return connectClient(new StreamableHTTPClientTransport(new URL(`${h.hubUrl}/mcp`), { requestInit }), { era });
      }),
    );
    const browser = await openBrowser();
    try {
      const { page, errors } = await openPage(browser, { viewport: TALL });
      await page.goto(h.hubUrl);
      await signInWith(page, you);
      return new HubWatchers(new PatientApi(h, you), { browser, page, errors }, clients);
    } catch (error) {
      await browser.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.close().catch(() => undefined);
    await this.#stream.close();
    await this.#browser.close();
  }

  /** The page has found the hub again, however often that was killed. */
  async connected(): Promise<void> {
    await this.#page.locator('.connection-connected').waitFor({ timeout: PATIENCE_MS });
  }

  /** Decides on the page until the page itself shows that it is decided. One person: one press at a time. */
  decide(requestId: string, decision: 'allow' | 'deny'): Promise<void> {
    const decided = this.#pressing.then(() => this.#decide(requestId, decision));
    this.#pressing = decided.catch(() => undefined);
    return decided;
  }

  async #decide(requestId: string, decision: 'allow' | 'deny'): Promise<void> {
    const card = this.#page.locator(`article.request:not(.settled)[data-request="${requestId}"]`);
    const deadline = performance.now() + PATIENCE_MS;
    // The answered ones would push the others off the screen.
    const clear = this.#page.getByRole('button', { name: /^Clear \d+ answered$/ });
    if ((await clear.count()) > 0) await clear.click({ timeout: PRESS_MS }).catch(() => undefined);
    await card.waitFor({ timeout: PATIENCE_MS }).catch(async (error: unknown) => {
      throw new Error(`The page does not show the request: ${await this.#page.locator('body').innerText()}`, {
        cause: error,
      });
    });
    const settled = this.#page.locator(`article.request.settled[data-request="${requestId}"]`);
    for (;;) {
      try {
        this.#page.setDefaultTimeout(PRESS_MS);
        await pressOn(card, decision === 'allow' ? 'Allow' : 'Deny');
        await card.waitFor({ state: 'detached' });
      } catch (error) {
        // The hub was killed meanwhile, and the page keeps the card open or has settled it without this press.
        if (performance.now() > deadline) throw error;
      }
      const isShownSettled = (await settled.count()) > 0;
      const { requests } = await this.#api.call('GET', 'requests');
      if (!requests.some((open: Json) => open.requestId === requestId)) return;
      ok(!isShownSettled, `The page shows ${requestId} as settled, but it is open.`);
      await sleep(RETRY_MS);
    }
  }

  async makeRule(match: string, directory: string): Promise<string> {
    const { rule } = await this.#api.call('POST', 'rules', { decision: 'allow', tool: 'Bash', match, directory });
    return rule.id;
  }

  async enableRule(id: string, enabled: boolean): Promise<void> {
    await this.#api.call('PATCH', `rules/${id}`, { enabled });
  }

  /** The stream told every event of these sessions once and in order, the audit has one decision for each request. */
  async check(sessionIds: readonly string[]): Promise<void> {
    for (const sessionId of sessionIds) {
      const { lastEventId } = await this.#api.call('GET', `sessions/${sessionId}`);
      await eventually(() => this.#stream.lastOf(sessionId) >= lastEventId, {
        what: `the stream has told all ${String(lastEventId)} events of ${sessionId}`,
        within: 30_000,
      });
      const decided: Json[] = [];
      for (let after: string | undefined; ;) {
        const page: Json = await this.#api.call(
          'GET',
          `audit?kind=decision&session=${sessionId}${after ? `&after=${encodeURIComponent(after)}` : ''}`,
        );
        // Whether an allowed call was then repeated is told as a decision too.
        decided.push(...page.entries.filter(({ outcome }: Json) => outcome === 'allow' || outcome === 'deny'));
        if (page.next === undefined) break;
        after = page.next;
      }
      const ids = new Set(decided.map(({ details }) => details.request));
      strictEqual(ids.size, decided.length, `requests of ${sessionId} were decided twice: ${JSON.stringify(decided)}`);
    }
    this.#stream.check();
    strictEqual(this.#errors.join('\n'), '', 'errors of the page');
  }
}

async function createToken(h: Harness, name: string, role: string): Promise<string> {
  const args = [builtServer(), 'token', 'create', name, '--role', role, '--json'];
  const made = await promisify(execFile)(process.execPath, args, { cwd: h.home, env: h.environment() });
  return (JSON.parse(made.stdout) as { token: string }).token;
}

/** Nobody knows the outcome of a call that a killed hub cut off. */
function callerOf(client: Client): Caller {
  return async (name, args) => {
    try {
      return await callTool(client, name, args, { timeout: HTTP_CALL_MS });
    } catch (error) {
      const said = String(error);
      if (!/fetch failed|terminated|timed out|stopping|No hub/i.test(said)) throw error;
      return { isError: true, data: undefined, text: `The outcome is unknown: ${said}` };
    }
  };
}

/** For calls that may be repeated at will. */
class PatientApi {
  readonly #h: Harness;
  readonly #token: string;

  constructor(h: Harness, token: string) {
    this.#h = h;
    this.#token = token;
  }

  fetch(method: string, route: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${this.#token}`);
    headers.set('content-type', 'application/json');
    return fetch(`${this.#h.hubUrl}/api/v1/${route}`, { method, ...init, headers });
  }

  async call(method: string, route: string, body?: object): Promise<Json> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        const response = await this.fetch(method, route, body && { body: JSON.stringify(body) });
        const json: Json = await response.json();
        if (response.ok) return json;
        ok(response.status === 503, `${method} ${route}: ${String(response.status)} ${JSON.stringify(json)}`);
      } catch (error) {
        // No hub is running.
        if (!(error instanceof TypeError) && !(error instanceof SyntaxError) && !String(error).includes('No hub'))
          throw error;
        if (performance.now() > deadline) throw error;
      }
      await sleep(RETRY_MS);
    }
  }
}

/** Reads the stream from its last position on, whatever happens to the hub. */
class StreamReader {
  readonly #api: PatientApi;
  readonly #closing = new AbortController();
  readonly #reading: Promise<void>;
  readonly #last = new Map<string, number>();
  #position = 0;
  #fault: Error | undefined;

  constructor(api: PatientApi) {
    this.#api = api;
    this.#reading = this.#read();
  }

  lastOf(sessionId: string): number {
    this.check();
    return this.#last.get(sessionId) ?? 0;
  }

  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && this.#fault === undefined) {
      try {
        const response = await this.#api.fetch('GET', 'events', {
          signal,
          headers: this.#position > 0 ? { 'last-event-id': String(this.#position) } : {},
        });
        let rest = '';
        for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
          const messages = (rest + chunk).split('\n\n');
          rest = messages.pop()!;
          for (const message of messages) this.#take(message);
        }
      } catch {
        // The hub was killed, or none is running.
      }
      if (!signal.aborted) await sleep(RETRY_MS);
    }
  }

  #take(message: string): void {
    const fields = new Map(
      message.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
    );
    try {
      const position = Number(fields.get('id') ?? this.#position);
      ok(position >= this.#position, `the stream went back from ${String(this.#position)} to ${String(position)}`);
      ok(fields.get('event') !== 'reset', 'the stream lost its place');
      if (fields.get('event') === 'event') {
        const { sessionId, id } = JSON.parse(fields.get('data')!);
        strictEqual(id, (this.#last.get(sessionId) ?? 0) + 1, `an event of ${String(sessionId)} on the stream`);
        this.#last.set(sessionId, id);
      }
      this.#position = position;
    } catch (error) {
      this.#fault ??= error as Error;
    }
  }
}
