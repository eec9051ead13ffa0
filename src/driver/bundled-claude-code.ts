import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

export interface BundledClaudeCode {
  /** The version of Claude Code that the Agent SDK was built for. */
  readonly version: string;
  /** The native program; absent when its optional package was not installed. */
  readonly executable: string | undefined;
}

/** What a session runs unless another Claude Code is specified; undefined if the SDK itself is missing. */
export function bundledClaudeCode(platform: NodeJS.Platform, arch: string): BundledClaudeCode | undefined {
  const sdk = locate('@anthropic-ai/claude-agent-sdk', import.meta.url);
  if (sdk === undefined) return undefined;
  const manifest = JSON.parse(readFileSync(path.join(path.dirname(sdk), 'package.json'), 'utf8')) as {
    claudeCodeVersion?: string;
  };
  return { version: manifest.claudeCodeVersion ?? '0.0.0', executable: installedPrograms(sdk, platform, arch)[0] };
}

let only: { readonly program: string | undefined } | undefined;

/**
 * The program, if there is no choice. To choose between those for two C libraries the SDK has Node generate a
 * diagnostic report at each session start, which takes 10 ms; npm installs only the one that fits.
 */
export function onlyBundledProgram(): string | undefined {
  if (only) return only.program;
  const sdk = locate('@anthropic-ai/claude-agent-sdk', import.meta.url);
  const programs = sdk === undefined ? [] : installedPrograms(sdk, process.platform, process.arch);
  only = { program: programs.length === 1 ? programs[0] : undefined };
  return only.program;
}

function installedPrograms(sdk: string, platform: NodeJS.Platform, arch: string): string[] {
  const file = platform === 'win32' ? 'claude.exe' : 'claude';
  const packages = [`${platform}-${arch}`, ...(platform === 'linux' ? [`${platform}-${arch}-musl`] : [])];
  return packages
    .map((name) => locate(`@anthropic-ai/claude-agent-sdk-${name}/${file}`, sdk))
    .filter((candidate) => candidate !== undefined)
    .filter((candidate) => existsSync(candidate));
}

function locate(specifier: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(specifier);
  } catch {
    return undefined;
  }
}
