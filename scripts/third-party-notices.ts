import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { TsdownPlugin } from 'tsdown';

/** The licences of the bundled packages require their text to be distributed with the code. */
export function thirdPartyNotices(fileName: string): TsdownPlugin {
  return {
    name: 'third-party-notices',
    generateBundle(_options, bundle) {
      const directories = new Set<string>();
      for (const output of Object.values(bundle)) {
        if (output.type !== 'chunk') continue;
        for (const id of output.moduleIds) {
          const directory = packageDirectory(id);
          if (directory !== undefined) directories.add(directory);
        }
      }
      this.emitFile({ type: 'asset', fileName, source: [...directories].map(notice).sort().join('\n') });
    },
  };
}

function packageDirectory(moduleId: string): string | undefined {
  return /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(moduleId)?.[0];
}

function notice(directory: string): string {
  const { name, version, license } = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8')) as Record<
    'name' | 'version' | 'license',
    string
  >;
  const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry));
  const text =
    file !== undefined && existsSync(path.join(directory, file))
      ? readFileSync(path.join(directory, file), 'utf8')
      : '';
  return `${name} ${version} (${license})\n\n${text.trim()}\n`;
}
