import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { registryEntry } from '../../scripts/bundle/registry-entry.ts';
import template from '../../server.json' with { type: 'json' };

/**
 * What the registry's schema of 2025-12-11 and its rules for bundles require of the fields we use. Strict, unlike the
 * registry, which would silently drop a misspelt field.
 */
const ENTRY = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: z
    .string()
    .max(255)
    .regex(/^\d+\.\d+\.\d+(-[\w.]+)?$/),
  repository: z.strictObject({ url: z.url(), source: z.literal('github') }).optional(),
  packages: z
    .array(
      z.strictObject({
        registryType: z.literal('mcpb'),
        identifier: z.url().regex(/^https:\/\/github\.com\/.+\/releases\/download\/.*mcp/),
        fileSha256: z.string().regex(/^[a-f0-9]{64}$/),
        transport: z.strictObject({ type: z.literal('stdio') }),
      }),
    )
    .optional(),
});

const content = Buffer.from('a bundle');
const bundle = { name: `claude-code-mcp-${template.version}.mcpb`, content };

test('server.json is an entry the registry accepts, and claims no package', () => {
  expect(ENTRY.parse(template)).toEqual(template);
  expect(template).not.toHaveProperty('packages');
});

test('a release’s entry names its repository and bundle', () => {
  const entry = registryEntry(template, { repository: 'Some-One/a-fork', bundle });
  expect(ENTRY.parse(entry)).toEqual(entry);
  expect(entry).toEqual({
    ...template,
    name: template.name.replace('OWNER', 'Some-One'),
    repository: { url: 'https://github.com/Some-One/a-fork', source: 'github' },
    packages: [
      {
        registryType: 'mcpb',
        identifier: `https://github.com/Some-One/a-fork/releases/download/v${template.version}/${bundle.name}`,
        fileSha256: createHash('sha256').update(content).digest('hex'),
        transport: { type: 'stdio' },
      },
    ],
  });
});

test.each(['', 'owner', 'owner/', '/name', 'https://github.com/owner/name'])(
  'no entry is created for %j, which is not a repository',
  (repository) => {
    expect(() => registryEntry(template, { repository, bundle })).toThrow('not the owner and name of a repository');
  },
);
