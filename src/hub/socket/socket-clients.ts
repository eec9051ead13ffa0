import type { Socket } from 'node:net';
import type { Settings } from '../../config/load-settings.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { Rules } from '../../engine/rules/rules.ts';
import type { HostContext } from '../../engine/engine-host.ts';
import type { Engine } from '../../engine/engine.ts';
import { createCallStates } from '../../mcp/forms/call-forms.ts';
import type { CallOnce } from '../../mcp/call-tool.ts';
import { Outboxes } from '../../mcp/outbox.ts';
import type { Observer } from '../../mcp/observe.ts';
import { serverFactory, type ServerIdentity } from '../../mcp/server.ts';
import { placeOf, type AttachRequest, type TerminalRequest } from '../../transports/attach/protocol.ts';
import { FrameTransport } from '../../transports/frame-transport.ts';
import { serveOver } from '../../transports/stdio.ts';
import { admit, principalAtTerminal, principalOf, withinSessions } from './admission.ts';
import type { InsidePeer, OutsidePeer } from './peer.ts';
import type { LocalCaller } from '../http-part.ts';
import type { SocketAnswer } from './socket-server.ts';

/** A client that has left this much unread for this long is not coming back to it. */
const STALLED_MS = 60_000;

interface SocketClientsOptions {
  readonly engine: Engine;
  readonly settings: Settings;
  readonly host: HostContext;
  readonly identity: ServerIdentity;
  readonly stateKey: string;
  readonly observe?: Observer;
  readonly once?: CallOnce;
  /** Serves the API to whoever is at the other end of a connection. */
  readonly serveApi: (socket: Socket, caller: LocalCaller) => void;
}

/** Clients of this user that are attached to the hub, each under its own rules. */
export class SocketClients {
  readonly #options: SocketClientsOptions;
  readonly #states: ReturnType<typeof createCallStates>;
  readonly #sockets = new Set<Socket>();
  readonly #outboxes = new Outboxes();

  constructor(options: SocketClientsOptions) {
    this.#options = options;
    this.#states = createCallStates(Buffer.from(options.stateKey, 'base64url'));
  }

  get count(): number {
    return this.#sockets.size;
  }

  async attach(request: AttachRequest, peer: OutsidePeer | InsidePeer): Promise<SocketAnswer> {
    const { engine, host, identity, observe, once } = this.#options;
    const principal = principalOf(peer);
    const around = peer.kind === 'inside' ? await this.#rulesAround(peer) : { rules: [] };
    const rules = 'why' in around ? around : await this.#rulesFor(request, principal, around.rules);
    if ('why' in rules) {
      const refused = { what: 'attach', outcome: 'refused', principal: principal.id };
      if (peer.kind === 'inside') engine.audit.record({ kind: 'server', who: 'policy', ...refused });
      return { reply: { ok: false, why: rules.why } };
    }
    const outbox = this.#outboxes.of(principal.id).connection();
    const factory = serverFactory(engine, identity, principal, {
      rules,
      states: this.#states,
      observe,
      once,
      outbox,
    });
    return {
      reply: { ok: true, version: identity.version },
      takeOver: (socket) => {
        this.#sockets.add(socket);
        const left = engine.connected({ principal, rules, showsForms: false });
        socket.once('close', () => {
          this.#sockets.delete(socket);
          left();
        });
        serveOver(new FrameTransport(socket, socket, outbox), factory, (error) =>
          host.log('debug', `protocol: ${error.message}`),
        );
        socket.setTimeout(STALLED_MS, () => {
          if (outbox.isFull) socket.destroy(new Error('the client does not read its answers'));
        });
        socket.resume();
      },
    };
  }

  /** A command of this user: the connection carries requests to the API from here on. */
  async openTerminal(request: TerminalRequest, peer: OutsidePeer): Promise<SocketAnswer> {
    const { engine, identity } = this.#options;
    const principal = principalAtTerminal(peer);
    const rules = await this.#rulesFor(request, principal, []);
    if ('why' in rules) return { reply: { ok: false, why: rules.why } };
    return {
      reply: { ok: true, version: identity.version },
      takeOver: (socket) => {
        const left = engine.connected({ principal, rules, showsForms: false });
        socket.once('close', left);
        this.#options.serveApi(socket, { principal, rules });
      },
    };
  }

  /** Those of the client within those of the hub and of the sessions around it. */
  async #rulesFor(
    request: AttachRequest | TerminalRequest,
    principal: Principal,
    around: readonly Settings[],
  ): Promise<Rules | { why: string }> {
    const { engine, settings, host } = this.#options;
    const admission = admit(request, withinSessions(settings, around), placeOf(settings, host));
    if ('why' in admission) return admission;
    return engine.rulesFor({
      settings: admission.settings,
      cwd: request.cwd,
      baseEnv: request.env,
      warnings: admission.warnings,
      access: await engine.accessOf(principal),
    });
  }

  /** The rules of every session that this client runs in or says it runs in; a mark that this hub did not make is refused. */
  async #rulesAround({ session, named }: InsidePeer): Promise<{ rules: Settings[] } | { why: string }> {
    const { engine } = this.#options;
    const ids = new Set(session === undefined ? named : [session, ...named]);
    if (ids.size === 0) return { why: 'it runs inside a session that this hub does not know' };
    const rules: Settings[] = [];
    for (const id of ids) {
      const known = await engine.settingsOf(id).catch(() => undefined);
      if (!known) return { why: `it claims to run inside session ${id}, which this hub does not know` };
      rules.push(known);
    }
    return { rules };
  }
}
