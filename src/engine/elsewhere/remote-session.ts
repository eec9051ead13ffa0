import type { Settings } from '../../config/load-settings.ts';
import { DomainError } from '../../errors/errors.ts';
import type { RequestRecord } from '../../schema/events.ts';
import type { SessionRecord } from '../../schema/records.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import type { Activity } from '../conversation/activity.ts';
import { AgentReports } from '../conversation/agent-reports.ts';
import { toDecision } from '../requests/answer.ts';
import type { Answer } from '../../schema/commands.ts';
import type { AskingSession } from '../requests/approvals.ts';
import type { Clock } from '../clock.ts';
import type { SeenElsewhere } from './elsewhere.ts';
import { EventLog, type EventLogLimits } from '../conversation/event-log.ts';
import { NoticeStream, type SessionNotice } from '../notices.ts';
import type { Principal } from '../rules/access.ts';
import type { WholeReading } from '../conversation/reading.ts';
import { openRequest, type OpenRequest, type Source } from '../requests/requests.ts';
import { requestNotFound } from '../session/session-errors.ts';
import { isAtRest } from '../conversation/state.ts';

export interface RemoteServices {
  readonly clock: Clock;
  readonly eventLimits: EventLogLimits;
  /** The rules that apply to it here. */
  settingsFor(record: SessionRecord): Settings;
  /** A form for it was answered here: has it decided where the session runs. */
  sendAnswer(session: RemoteSession, requestId: string, answer: Answer, by: Principal): void;
}

interface Shown {
  readonly request: OpenRequest;
  readonly settled: AbortController;
}

/** A session that another hub runs, as far as it is stored: for reading, for waiting, and for asking people. */
export class RemoteSession implements AskingSession {
  readonly id: string;
  readonly client = undefined;
  readonly notices = new NoticeStream<SessionNotice>();
  readonly #services: RemoteServices;
  readonly #log: EventLog;
  readonly #requests = new Map<string, Shown>();
  #seen: SeenElsewhere;
  /** It is no longer kept in sync: whoever waits for it has to look it up again. */
  hasLeft = false;

  constructor(seen: SeenElsewhere, services: RemoteServices) {
    this.id = seen.record.id;
    this.#services = services;
    this.#seen = seen;
    this.#log = new EventLog(services.eventLimits);
    this.update(seen);
  }

  /** Its current state; the events are those since the last update. Returns the new requests. */
  update(seen: SeenElsewhere): OpenRequest[] {
    this.#seen = seen;
    this.#log.restore(seen.events, seen.lastEventId + 1, seen.droppedThrough);
    const open = new Set(seen.requests.map(({ id }) => id));
    for (const [id, { settled }] of [...this.#requests]) {
      if (open.has(id)) continue;
      this.#requests.delete(id);
      settled.abort('The request was settled elsewhere.');
    }
    return seen.requests.filter(({ id }) => !this.#requests.has(id)).map((record) => this.#show(record));
  }

  get hub(): string {
    return this.#seen.hub;
  }

  get record(): SessionRecord {
    return this.#seen.record;
  }

  get seen(): Omit<SeenElsewhere, 'events'> {
    return this.#seen;
  }

  get owner(): Principal {
    return this.record.owner;
  }

  get options(): SessionOptions {
    return this.record.options;
  }

  get settings(): Settings {
    return this.#services.settingsFor(this.record);
  }

  get approvals(): Settings['approvals'] {
    return this.settings.approvals;
  }

  get atRest(): boolean {
    return isAtRest(this.record.state);
  }

  get requests(): OpenRequest[] {
    return [...this.#requests.values()].map(({ request }) => request);
  }

  findRequest(id: string): OpenRequest | undefined {
    return this.#requests.get(id)?.request;
  }

  leave(): void {
    this.hasLeft = true;
    this.notices.tell({ kind: 'changed' });
  }

  /** The hub that it runs on looks, when the answer gets there. */
  async checkFresh(): Promise<void> {}

  /** Checked here, decided there: it is settled when the store says so. */
  respond(requestId: string, answer: Answer, source: Source, by?: Principal): void {
    const request = this.findRequest(requestId);
    if (!request) throw requestNotFound(requestId);
    toDecision(request, answer, source);
    if (!by) throw new DomainError('INTERNAL', 'An answer sent to another hub must say who gave it.');
    this.#services.sendAnswer(this, requestId, answer, by);
  }

  decide(): void {
    throw new DomainError('INTERNAL', `Session ${this.id} runs on the hub ${this.hub}; nothing is decided here.`);
  }

  read(): WholeReading {
    const services = this.#services;
    let replayed: Activity | undefined;
    const activity = (): Activity => (replayed ??= this.#activity());
    return {
      record: this.record,
      now: services.clock.wallTime(),
      log: this.#log,
      requests: this.#seen.requests,
      unfinishedText: '',
      toolUses: (since) => (since === 'all' ? activity().toolUses : activity().latestToolUses),
      findToolUse: (id) => activity().findToolUse(id),
      fullWork: () => this.record.work,
    };
  }

  /** What the stored events say; only some answers need it. */
  #activity(): Activity {
    const { clock, eventLimits } = this.#services;
    const reports = new AgentReports({ options: {}, eventLimits, inherited: undefined }, clock, () => undefined);
    reports.replay(this.#log.from(this.record.lastMessageAt).events, this.atRest);
    return reports.activity;
  }

  #show(record: RequestRecord): OpenRequest {
    const settled = new AbortController();
    const request = openRequest(record, new AbortController().signal, settled.signal);
    this.#requests.set(record.id, { request, settled });
    return request;
  }
}
