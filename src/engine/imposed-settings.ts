import type { Settings } from '../config/load-settings.ts';
import type { SessionOptions } from '../schema/session-options.ts';
import { sandboxFor, thisSandboxHost, type OwnWorktree, type SandboxHost } from './imposed-sandbox.ts';

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
export function imposeRules(
  rules: Settings,
  options: SessionOptions,
  own?: OwnWorktree,
  host: () => SandboxHost = thisSandboxHost,
): ImposedLaunch {
  if (!imposesSettings(rules)) return { options, env: {} };
  const { sandbox: inSettings, ...asked } = settingsOf(options);
  const given = { ...fields(inSettings), ...options.sandbox };
  const sandbox = rules.sandbox ? sandboxFor(rules, given, host(), own) : undefined;
  const permissions = {
    ...BLOCKED,
    ...(rules.sandbox && closedTo(own?.besides.flatMap((place) => [place, `${place}/**`]) ?? [`${rules.stateDir}/**`])),
  };
  const askedPermissions = fields(asked['permissions']);
  const settings = {
    ...asked,
    permissions: {
      ...askedPermissions,
      ...permissions,
      deny: [...strings(askedPermissions['deny']), ...strings(permissions['deny'])],
      blockReadsExemptPaths: rules.allowedDirs ?? [],
    },
  };
  const launched = sandbox ?? (Object.keys(given).length > 0 ? given : undefined);
  return {
    options: { ...options, settings, ...(launched && { sandbox: launched }) },
    managedSettings: { permissions, ...(sandbox && { sandbox }) },
    env: {},
  };
}

function imposesSettings({ allowedDirs, sandbox }: Settings): boolean {
  return allowedDirs !== undefined || sandbox;
}

/** Claude Code refuses its file tools what lies outside the session's directories, in every mode and before any rule. */
const BLOCKED: Fields = { blockReadsOutsideWorkingDirectories: true, blockWritesOutsideWorkingDirectories: true };

/** A session may work in a directory above the server's own files. */
function closedTo(places: readonly string[]): Fields {
  return { deny: ['Read', 'Edit'].flatMap((tool) => places.map((place) => `${tool}(/${place})`)) };
}

/** A text that is left here is inline JSON: the policy has read what was a file. */
function settingsOf({ settings }: SessionOptions): Fields {
  return fields(typeof settings === 'string' ? JSON.parse(settings) : settings);
}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
