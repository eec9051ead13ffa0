import type { Settings } from '../config/load-settings.ts';
import type { SessionOptions } from '../schema/session-options.ts';

/*
 * What the operator's rules add to every process of Claude Code, whatever its caller asked for. Pure: the rules and the
 * options that were admitted go in, what is launched comes out. Checks that refuse something belong to the policy.
 */

type Fields = Readonly<Record<string, unknown>>;

export interface ImposedLaunch {
  readonly options: SessionOptions;
  /** Claude Code's policy layer: no settings of a caller, a project or a user override it. */
  readonly managedSettings?: Fields;
  /** Set over the caller's own variables. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A limit is written into both layers that Claude Code takes from the program that starts it. The policy layer cannot be
 * overridden, but Claude Code drops it on a machine whose administrator has a policy of their own; `settings` always
 * counts.
 */
export function imposeRules(rules: Settings, options: SessionOptions): ImposedLaunch {
  const limits = limitsOf(rules);
  if (!limits) return { options, env: {} };
  const { permissions } = limits;
  const asked = settingsOf(options);
  const settings = {
    ...asked,
    permissions: { ...fields(asked['permissions']), ...permissions, blockReadsExemptPaths: rules.allowedDirs },
  };
  return { options: { ...options, settings }, managedSettings: { permissions }, env: {} };
}

/** Whether `settings` of a caller have to be known as an object, to be merged with what the rules impose. */
export function imposesSettings(rules: Settings): boolean {
  return limitsOf(rules) !== undefined;
}

function limitsOf(rules: Settings): { readonly permissions: Fields } | undefined {
  if (!rules.allowedDirs) return undefined;
  return {
    permissions: { blockReadsOutsideWorkingDirectories: true, blockWritesOutsideWorkingDirectories: true },
  };
}

/** A text that is left here is inline JSON: the policy has read what was a file. */
function settingsOf({ settings }: SessionOptions): Fields {
  return fields(typeof settings === 'string' ? JSON.parse(settings) : settings);
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
