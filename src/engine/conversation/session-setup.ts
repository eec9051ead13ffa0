import type { PermissionMode, SessionOptions } from '../../schema/session-options.ts';

/** Text can be shown as it is written. */
export function withPartialMessages(options: SessionOptions): SessionOptions {
  return { ...options, includePartialMessages: true };
}

/** What a session runs with: the options for its next process, and what the current one has reported about itself. */
export class SessionSetup {
  #options: SessionOptions;
  #model: string | undefined;
  #permissionMode: PermissionMode | undefined;
  #tools: string[] | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#model = options.model;
    this.#permissionMode = options.permissionMode;
  }

  /** As an earlier process reported it. */
  restore({ model, permissionMode, tools }: Pick<SessionSetup, 'model' | 'permissionMode' | 'tools'>): void {
    this.#model = model;
    this.#permissionMode = permissionMode;
    this.#tools = tools;
  }

  get options(): SessionOptions {
    return this.#options;
  }

  get model(): string | undefined {
    return this.#model;
  }

  get permissionMode(): PermissionMode | undefined {
    return this.#permissionMode;
  }

  get tools(): string[] | undefined {
    return this.#tools;
  }

  /** Options that are never stored and were provided again. */
  add(options: SessionOptions): void {
    this.#options = { ...this.#options, ...options };
  }

  switchModel(model: string): void {
    this.#options = { ...this.#options, model };
    this.#model = model;
  }

  switchMode(permissionMode: PermissionMode): void {
    this.#options = { ...this.#options, permissionMode };
    this.#permissionMode = permissionMode;
  }

  started(reported: { tools: string[]; model: string; permissionMode: PermissionMode }): void {
    this.#tools = reported.tools;
    this.#model = reported.model;
    this.#permissionMode = reported.permissionMode;
  }

  /** A mode that was left, such as plan mode when the plan was allowed, must not come back with the next process. */
  modeReported(mode: PermissionMode): void {
    if (this.#permissionMode !== undefined && mode !== this.#permissionMode) this.switchMode(mode);
    this.#permissionMode = mode;
  }
}
