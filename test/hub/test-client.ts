/** The engine's client, as tests use it: one short method per command. */

import { EngineClient } from '../../src/engine/client.ts';
import type { Outcomes } from '../../src/engine/elsewhere/elsewhere.ts';
import type { Principal } from '../../src/engine/rules/access.ts';
import type { SessionReading } from '../../src/engine/conversation/reading.ts';
import type { Answer, CommandOf } from '../../src/schema/commands.ts';
import type { TestHub } from './test-hub.ts';

export const ANN: Principal = { id: 'token:ann', name: 'ann', kind: 'token', role: 'caller', attended: false };

export class TestClient {
  readonly client: EngineClient;

  constructor({ engine }: TestHub, principal: Principal = ANN) {
    const rules = engine.rulesFor({ settings: engine.settings, cwd: undefined });
    this.client = new EngineClient(engine, { principal, rules, showsForms: false });
  }

  async start(request: Omit<CommandOf<'start'>, 'kind'>): Promise<{ id: string }> {
    return { id: (await this.client.execute<'start'>({ kind: 'start', ...request })).sessionId };
  }

  reply(request: Omit<CommandOf<'reply'>, 'kind'>): Promise<Outcomes['reply']> {
    return this.client.execute<'reply'>({ kind: 'reply', ...request });
  }

  respond(sessionId: string, requestId: string, answer: Answer): Promise<Outcomes['respond']> {
    return this.client.execute<'respond'>({ kind: 'respond', sessionId, requestId, answer });
  }

  cancel(sessionId: string): Promise<boolean> {
    return this.client.execute<'cancel'>({ kind: 'cancel', sessionId });
  }

  apply(sessionId: string, options: Pick<CommandOf<'apply'>, 'mode' | 'message'>): Promise<Outcomes['apply']> {
    return this.client.execute<'apply'>({ kind: 'apply', sessionId, ...options });
  }

  rewind(sessionId: string, toUserMessage: string, dryRun: boolean): Promise<Outcomes['rewind']> {
    return this.client.execute<'rewind'>({ kind: 'rewind', sessionId, toUserMessage, dryRun });
  }

  read(sessionId: string): Promise<SessionReading> {
    return this.client.read(sessionId);
  }
}
