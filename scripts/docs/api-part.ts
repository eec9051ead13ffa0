/** The calls of the hub's API as a table, and its OpenAPI document. */

import { openApiDocument, openApiRoute } from '../../src/hub/api/openapi.ts';
import { apiRouteTable } from '../../src/hub/api/routes.ts';
import { EVERY_ROLE } from '../../src/hub/api/rights.ts';
import type { ApiRoute } from '../../src/hub/api/define-route.ts';
import { markdownTable } from './markdown-table.ts';

export function apiRoutesTable(): string {
  const rows = routes().map(({ method, path, summary, roles }) => [
    `\`${method} ${path.replace('/api/v1', '')}\``,
    summary,
    roles.length === EVERY_ROLE.length ? 'all' : roles.join(', '),
  ]);
  return markdownTable(['Call', 'What it does', 'Roles'], rows);
}

export function apiDocument(version: string): string {
  return `${JSON.stringify(openApiDocument(routes(), version), undefined, 1)}\n`;
}

function routes(): ApiRoute[] {
  const table = apiRouteTable(() => {
    throw new Error('Nothing is called while the documents are generated.');
  });
  return [...table, openApiRoute(table)];
}
