import type { AgentProcess } from '../driver/agent-process.ts';

/** The process of a session. One that closes is no longer listened to, but the next may only start when it is gone. */
type Link =
  | { kind: 'none' }
  | { kind: 'live'; process: AgentProcess }
  | { kind: 'closing'; process: AgentProcess; gone: Promise<void> };

/** A session's hold on its process: none, one that lives, or one on its way out. */
export class AgentLink {
  #link: Link = { kind: 'none' };

  get live(): AgentProcess | undefined {
    return this.#link.kind === 'live' ? this.#link.process : undefined;
  }

  /** Also of a process that is on its way out. */
  get pid(): number | undefined {
    return this.#link.kind === 'none' ? undefined : this.#link.process.pid;
  }

  attach(process: AgentProcess): void {
    this.#link = { kind: 'live', process };
  }

  /** It has ended by itself. */
  detach(): void {
    this.#link = { kind: 'none' };
  }

  /** Whether this process may still be listened to. Before it is attached it is on its way in. */
  mayHear(process: () => AgentProcess): boolean {
    return this.#link.kind === 'none' || (this.#link.kind === 'live' && this.#link.process === process());
  }

  /** Begins to end a live process; `closed` tells when it has gone. */
  close(): void {
    if (this.#link.kind !== 'live') return;
    const { process } = this.#link;
    const gone = process.stop().then(() => {
      if (this.#link.kind === 'closing' && this.#link.gone === gone) this.#link = { kind: 'none' };
    });
    this.#link = { kind: 'closing', process, gone };
  }

  async closed(): Promise<void> {
    if (this.#link.kind === 'closing') await this.#link.gone;
  }

  /** One that died meanwhile need not know: the next starts with the new options. */
  async tell(control: (process: AgentProcess) => Promise<void>): Promise<void> {
    const process = this.live;
    if (!process) return;
    await control(process).catch(async (error: unknown) => {
      if (process.alive) throw error;
      await process.gone;
    });
  }

  /** A process may have died without its end being told yet; what is sent to it would not arrive. */
  async deathTold(): Promise<void> {
    if (this.live && !this.live.alive) await this.live.gone;
  }
}
