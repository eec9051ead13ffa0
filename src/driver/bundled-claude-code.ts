import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

export interface BundledClaudeCode {
  /** The version of Claude Code that the Agent SDK was made for. */
  readonly version: string;
  /** The native program; absent when its optional package was not installed. */
  readonly executable: string | undefined;
}

/** What a session runs when nobody names another Claude Code; undefined when the SDK itself is not there. */
export function bundledClaudeCode(platform: NodeJS.Platform, arch: string): BundledClaudeCode | undefined {
  const sdk = locate('@anthropic-ai/claude-agent-sdk', import.meta.url);
  if (sdk === undefined) return undefined;
  const manifest = JSON.parse(readFileSync(path.join(path.dirname(sdk), 'package.json'), 'utf8')) as {
    claudeCodeVersion?: string;
  };
  const file = platform === 'win32' ? 'claude.exe' : 'claude';
  const packages = [`${platform}-${arch}`, ...(platform === 'linux' ? [`${platform}-${arch}-musl`] : [])];
  const executable = packages
    .map((name) => locate(`@anthropic-ai/claude-agent-sdk-${name}/${file}`, sdk))
    .find((candidate) => candidate !== undefined && existsSync(candidate));
  return { version: manifest.claudeCodeVersion ?? '0.0.0', executable };
}

function locate(specifier: string, from: string): string | undefined {
  try {
    return createRequire(from).resolve(specifier);
  } catch {
    return undefined;
  }
}
