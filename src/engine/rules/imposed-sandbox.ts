import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Settings } from '../../config/load-settings.ts';
import { missingSandboxPackages, SANDBOX_REMEDY } from '../../config/needed-programs.ts';
import { DomainError } from '../../errors/errors.ts';
import { fields, type Fields } from '../../schema/json.ts';

/** What a command needs from the system to run at all; everything else at the top level is private. */
const SYSTEM_DIRECTORIES: Readonly<Record<string, readonly string[]>> = {
  linux: ['bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'nix', 'opt', 'proc', 'sbin', 'usr'],
  darwin: [
    'Applications',
    'Library',
    'System',
    'bin',
    'cores',
    'dev',
    'etc',
    'nix',
    'opt',
    'private',
    'sbin',
    'usr',
    'var',
  ],
};

/** Below those, but private. */
const NEVER_READ: Readonly<Record<string, readonly string[]>> = { darwin: ['/private/tmp', '/private/var/tmp'] };

/** Programs that people install in their home directory, and the git identity. */
const READ_IN_HOME = [
  ...['.local/bin', '.local/lib', '.cargo/bin', '.bun/bin', '.deno/bin', 'go/bin'],
  ...[
    '.nvm',
    '.fnm',
    '.volta',
    '.asdf',
    '.pyenv',
    '.rbenv',
    '.rustup',
    '.sdkman',
    '.local/share/mise',
    '.local/share/uv',
  ],
  ...['.gitconfig', '.config/git'],
];

/** The part of this machine that the sandbox depends on. */
export interface SandboxHost {
  readonly platform: NodeJS.Platform;
  /** The entries of the root directory. */
  readonly topLevel: readonly string[];
  readonly temporaryDir: string;
}

export function thisSandboxHost(): SandboxHost {
  return { platform: process.platform, topLevel: readdirSync('/').map((name) => `/${name}`), temporaryDir: tmpdir() };
}

/** Claude Code would report this too, but late and in terms of its own settings. */
export function checkSandboxPackages(env: NodeJS.ProcessEnv): void {
  const missing = missingSandboxPackages({ env, platform: process.platform });
  if (missing.length === 0) return;
  throw new DomainError(
    'INTERNAL',
    `The session was not started because its commands cannot be sandboxed: ${notInstalled(missing)}. ${SANDBOX_REMEDY}`,
  );
}

function notInstalled(programs: readonly string[]): string {
  return `${programs.join(' and ')} ${programs.length === 1 ? 'is' : 'are'} not installed`;
}

/** What is in force of the sandbox that a session was asked to have, in one phrase; undefined if it was not. */
export function sandboxInForce(asked: Fields | undefined, env: NodeJS.ProcessEnv): string | undefined {
  if (asked?.['enabled'] !== true) return undefined;
  if (process.platform === 'win32') return 'sandbox requested, not available: Claude Code has none on Windows';
  const missing = missingSandboxPackages({ env, platform: process.platform });
  if (missing.length > 0) return `sandbox requested, not available: ${notInstalled(missing)}`;
  const network = fields(asked['network']);
  const hosts = strings(network['allowedDomains']);
  if (hosts.length > 0) return `sandbox on, network: ${hosts.join(', ')}`;
  return network['strictAllowlist'] === true ? 'sandbox on, no network' : 'sandbox on';
}

/** A worktree that a session works in, and the parts of the repository its commands need in order to commit. */
export interface OwnWorktree {
  readonly path: string;
  readonly repository: string;
  readonly writable: readonly string[];
  /** Inside what is writable. */
  readonly readOnly: readonly string[];
  /** What the server keeps next to it. */
  readonly besides: readonly string[];
}

/** What a caller may set for the sandbox if the operator turned it on: only what tightens it. */
export function sandboxFor(
  rules: Pick<Settings, 'sandboxNetwork' | 'stateDir'>,
  asked: Fields,
  host: SandboxHost,
  own?: OwnWorktree,
  masked: readonly string[] = [],
): Fields {
  const network = fields(asked['network']);
  const filesystem = fields(asked['filesystem']);
  // Claude Code reopens the working directories, which may contain any of these.
  const closed = [...new Set([...(own?.besides ?? [rules.stateDir]), ...masked])];
  return {
    enabled: true,
    failIfUnavailable: true,
    allowUnsandboxedCommands: false,
    autoAllowBashIfSandboxed: asked['autoAllowBashIfSandboxed'] === true,
    excludedCommands: [],
    enableWeakerNestedSandbox: false,
    enableWeakerNetworkIsolation: false,
    allowNestedUserNamespaces: false,
    allowAppleEvents: false,
    network: {
      allowedDomains: [...rules.sandboxNetwork],
      deniedDomains: strings(network['deniedDomains']),
      strictAllowlist: true,
      allowManagedDomainsOnly: true,
      allowAllUnixSockets: false,
      allowLocalBinding: false,
    },
    filesystem: {
      disabled: false,
      denyRead: [...deniedDirectories(host), ...closed, ...strings(filesystem['denyRead'])],
      denyWrite: [...closed, ...(own?.readOnly ?? []), ...strings(filesystem['denyWrite'])],
      allowRead: [
        ...READ_IN_HOME.map((name) => `~/${name}`),
        ...proxySockets(host),
        ...(own ? [own.path, own.repository] : []),
      ],
      allowWrite: [...(own?.writable ?? [])],
    },
  };
}

/** Claude Code itself reopens the working directories. */
function deniedDirectories({ platform, topLevel }: SandboxHost): string[] {
  const readable = SYSTEM_DIRECTORIES[platform];
  // Which directories other systems need is unknown; Claude Code's own rules for home directories still apply.
  const others = readable ? topLevel.filter((entry) => !readable.includes(path.posix.basename(entry))) : [];
  return ['~', ...others, ...(NEVER_READ[platform] ?? [])];
}

/** Claude Code reaches the network through sockets in the temporary directory, which would be hidden with it. */
function proxySockets({ temporaryDir }: SandboxHost): string[] {
  return ['http', 'socks'].map((kind) => path.posix.join(temporaryDir, `claude-${kind}-*.sock`));
}

export function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}
