/** The entry of a release in the MCP registry: `server.json` plus what is only known at release time. */

import { createHash } from 'node:crypto';

export interface Release {
  /** `owner/name`, as GitHub writes it. */
  readonly repository: string;
  readonly bundle: { readonly name: string; readonly content: Uint8Array };
}

export interface RegistryEntry {
  readonly name: string;
  readonly version: string;
  readonly [field: string]: unknown;
}

/** Names the bundle of the release, never an npm package: the npm name belongs to an unrelated program. */
export function registryEntry(template: RegistryEntry, { repository, bundle }: Release): RegistryEntry {
  const [owner, name, ...rest] = repository.split('/');
  if (!owner || !name || rest.length > 0) throw new Error(`not the owner and name of a repository: ${repository}`);
  const url = `https://github.com/${repository}`;
  return {
    ...template,
    name: template.name.replace('OWNER', owner),
    repository: { url, source: 'github' },
    packages: [
      {
        registryType: 'mcpb',
        identifier: `${url}/releases/download/v${template.version}/${bundle.name}`,
        fileSha256: createHash('sha256').update(bundle.content).digest('hex'),
        transport: { type: 'stdio' },
      },
    ],
  };
}
