import os from 'node:os';
import path from 'node:path';
import { isDoneByPrincipal, readAudit, type AuditQuery } from '../../audit/report.ts';
import type { AuditEntry } from '../../audit/audit-log.ts';
import type { Principal } from '../../engine/rules/access.ts';
import { DomainError } from '../../errors/errors.ts';
import { defined } from '../../schema/json.ts';
import {
  apiMe,
  directoriesAnswer,
  directoriesQuery,
  emptyBody,
  modelsAnswer,
  signInCode,
  type ApiMe,
} from '../../schema/api.ts';
import {
  auditPage,
  auditQuery,
  createdToken,
  revokedToken,
  tokenBody,
  tokensAnswer,
  type AuditPage,
  type CreatedToken,
  type TokensAnswer,
} from '../../schema/api-admin.ts';
import { expiryFrom } from '../auth/tokens.ts';
import { AuditTargets } from './audit-targets.ts';
import { defineRoute, type ApiContext, type ApiRoute } from './define-route.ts';
import { DRIVERS, EVERY_ROLE, mayOf, READERS } from './rights.ts';
import { iso, tokenView, type ViewContext } from './views.ts';

/** Who is calling, what was done, and who else has access. */
export function adminRoutes(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/me',
      operation: 'getMe',
      summary: 'The owner of the credential and its permissions.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'The principal.', schema: apiMe } },
      async run({ context, principal }) {
        const { version, settings } = context;
        const { id, name, kind, role, attended } = principal;
        const json: ApiMe = {
          principal: { id, name, kind, role, attended },
          hub: { version, approvals: settings.approvals },
          may: mayOf(principal, settings.approvals),
          ...startsOf(context, principal),
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/audit',
      operation: 'listAudit',
      summary: 'The audit log, newest first.',
      roles: READERS,
      query: auditQuery,
      answers: { 200: { description: 'A page of entries.', schema: auditPage } },
      async run({ context: { settings, store }, principal: reader, query }) {
        const { principal: person, search = '', after, limit, ...filter } = query;
        if (settings.auditLog === 'off') throw new DomainError('UNAVAILABLE', 'The audit log is off.');
        const before = after === undefined ? undefined : fromCursor(after);
        const view = viewOf(reader);
        const targets = new AuditTargets(store);
        const { entries } = await readAudit(settings.auditLog, {
          ...filter,
          person,
          last: limit + 1,
          matches: (entry) => search === '' || targets.mention(entry, search),
          before,
        });
        const page = entries.toReversed().slice(0, limit);
        const json: AuditPage = {
          entries: await Promise.all(
            page.map(async (entry) => {
              const { principal, name = principal && (await view.nameOf(principal)) } = entry;
              const by = isDoneByPrincipal(entry) ? name : undefined;
              return { ...entry, ...defined({ name, by, target: await targets.of(entry) }) };
            }),
          ),
          ...(entries.length > limit && { next: toCursor(page, before) }),
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sign-in-codes',
      operation: 'createSignInCode',
      summary: 'A code that signs another device in as the user of this machine: once, within two minutes.',
      roles: ['admin'],
      body: emptyBody,
      repeat: 'refused',
      answers: { 201: { description: 'The code, for a link that ends with #code=….', schema: signInCode } },
      async run({ context, principal }) {
        const code = context.signInCode();
        context.clientFor(principal).record({ kind: 'server', what: 'sign-in code', outcome: 'ok' });
        return { status: 201, json: { code } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/directories',
      operation: 'listDirectories',
      summary: 'The directories below one, to choose where a session works.',
      roles: DRIVERS,
      query: directoriesQuery,
      answers: { 200: { description: 'Absolute paths.', schema: directoriesAnswer } },
      async run({ context, principal, query }) {
        const directory = path.resolve(os.homedir(), expandHome(query.path));
        const directories = await context.clientFor(principal).browse(directory);
        return { status: 200, json: { path: directory, directories } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/models',
      operation: 'listModels',
      summary: 'The models that Claude Code offered when a session last started; none before that.',
      roles: DRIVERS,
      answers: { 200: { description: 'The models.', schema: modelsAnswer } },
      async run({ context, principal }) {
        return { status: 200, json: { models: await context.clientFor(principal).offeredModels() } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/tokens',
      operation: 'listTokens',
      summary: 'Tokens and sign-ins, newest first, without their secrets.',
      roles: ['admin'],
      answers: { 200: { description: 'The tokens.', schema: tokensAnswer } },
      async run({ context, credential }) {
        const [rows, uses] = await Promise.all([context.tokens.list(), context.tokens.lastUses()]);
        const own = credential?.kind === 'stored' ? credential.id : undefined;
        const json: TokensAnswer = {
          tokens: rows.map((row) => tokenView(row, context.now(), uses.get(row.id), row.id === own)),
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/tokens',
      operation: 'createToken',
      summary: 'Creates a token. It is shown once, in this response.',
      roles: ['admin'],
      body: tokenBody,
      repeat: 'refused',
      answers: { 201: { description: 'The token.', schema: createdToken } },
      async run({ context, principal, body: { name, role, attended, expires } }) {
        const expiresAt = expiryFrom(expires, context.now());
        const { token, row } = await context.tokens.create({ name, role, attended, expiresAt });
        context.clientFor(principal).record({
          kind: 'server',
          what: `token created: ${row.id}`,
          outcome: 'ok',
          details: { role, attended },
        });
        const json: CreatedToken = {
          ...{ id: row.id, name, role, attended, token },
          ...(row.expiresAt !== undefined && { expiresAt: iso(row.expiresAt) }),
        };
        return { status: 201, json };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v1/tokens/{id}',
      operation: 'revokeToken',
      summary: 'Revokes a token or a sign-in, and all sign-ins made with it.',
      roles: ['admin'],
      answers: { 200: { description: 'It is no longer valid.', schema: revokedToken } },
      async run({ context, principal, params }) {
        const id = params['id'] ?? '';
        const known = (await context.tokens.list()).some((token) => token.id === id);
        if (!known) return { status: 404, json: { error: { code: 'NOT_FOUND', message: 'There is no such token.' } } };
        const row = await context.tokens.revoke(id);
        context.clientFor(principal).record({ kind: 'server', what: `token revoked: ${row.id}`, outcome: 'ok' });
        return { status: 200, json: { token: tokenView(row, context.now()) } };
      },
    }),
  ];
}

/** `~` as people write it. */
export function expandHome(written: string): string {
  return written.replace(/^~(?=$|[\\/])/, () => os.homedir());
}

function startsOf(context: ApiContext, principal: Principal): Pick<ApiMe, 'starts'> {
  if (!DRIVERS.includes(principal.role)) return {};
  const client = context.clientFor(principal);
  const { allowedDirectories: directories } = client;
  const limit = directories && { directories: [...directories] };
  return { starts: { modes: client.permittedModes, home: os.homedir(), ...limit } };
}

/** Where a page ended: the time of its last entry, and how many entries with that time it had. */
function toCursor(page: readonly AuditEntry[], before: Place | undefined): string {
  const time = page.at(-1)?.time ?? '';
  const earlier = before?.time === time ? before.skip : 0;
  return `${time}~${earlier + page.filter((entry) => entry.time === time).length}`;
}

type Place = NonNullable<AuditQuery['before']>;

function fromCursor(cursor: string): Place {
  const [time = '', skip = ''] = cursor.split('~');
  if (Number.isNaN(Date.parse(time)) || !/^\d{1,6}$/.test(skip))
    throw new DomainError('INVALID_ARGUMENT', 'after: use `next` from the previous page.');
  return { time, skip: Number(skip) };
}
