import { DomainError } from '../../errors/errors.ts';
import type { Role } from '../../schema/enums.ts';
import { RequestRecord } from '../../schema/events.ts';
import {
  madeRules,
  packsAnswer,
  replayAnswer,
  replayBody,
  ruleAnswer,
  ruleBody,
  rulePatchBody,
  rulesAnswer,
  rulesBody,
  type ApiRule,
  type MadeRules,
  type PacksAnswer,
  type ReplayAnswer,
  type RuleAnswer,
  type RulesAnswer,
} from '../../schema/api-admin.ts';
import type { RuleFields, StandingRule } from '../../schema/standing-rules.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { RouteResponse } from '../http/route.ts';
import { inactivity, mayDecideOn, notesOn, RuleManager, withMatch, PACKS } from '../rules/manage-rules.ts';
import { REPLAY_DAYS, replayRules } from '../rules/replay.ts';
import { defineRoute, type ApiContext, type ApiRoute } from './define-route.ts';
import { READERS, visibleRequest } from './rights.ts';
import { iso, type ViewContext } from './views.ts';

/** Roles of people who decide in advance. */
const AUTHORS: readonly Role[] = ['approver', 'admin'];
const DAY_MS = 86_400_000;

/** Standing rules: what people have decided in advance, and what that would have meant so far. */
export function ruleRoutes(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/rules',
      operation: 'listRules',
      summary: 'Standing rules, newest first, with how often each was used.',
      roles: READERS,
      answers: { 200: { description: 'The rules.', schema: rulesAnswer } },
      async run({ context, principal }) {
        const rules = await new RuleManager(context.store, () => context.now()).list();
        const view = viewOf(principal);
        const json: RulesAnswer = { rules: await Promise.all(rules.map((rule) => ruleView(rule, view, context))) };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/rules',
      operation: 'createRule',
      summary: 'Makes a rule. An approver makes one for a repository; wider ones are an admin’s.',
      roles: AUTHORS,
      body: ruleBody,
      answers: { 201: { description: 'The rule, in force.', schema: ruleAnswer } },
      async run({ context, principal, body: { expiresAt, requestId, ...fields } }) {
        const repository = await repositoryOf(requestId, context, principal);
        const asked = { ...withMatch(fields), directory: fields.directory ?? repository };
        const manager = new RuleManager(context.store, () => context.now());
        const at = expiresAt === undefined ? {} : { expiresAt: Date.parse(expiresAt) };
        const [rule] = await manager.create([{ ...asked, ...at }], principal, repository);
        return changed(201, rule, 'rule made', context, viewOf(principal));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/rules/batch',
      operation: 'createRules',
      summary: 'Makes all of these rules or none.',
      roles: AUTHORS,
      body: rulesBody,
      answers: { 201: { description: 'The ids of the rules, which are in force.', schema: madeRules } },
      async run({ context, principal, body: { rules } }) {
        const manager = new RuleManager(context.store, () => context.now());
        const given = rules.map(({ expiresAt, ...fields }) => ({
          ...fields,
          ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
        }));
        const made = await manager.create(given, principal);
        await announce(made, 'rule made', context, principal);
        const json: MadeRules = { ids: made.map(({ id }) => id) };
        return { status: 201, json };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/v1/rules/{id}',
      operation: 'changeRule',
      summary: 'Changes a rule, or switches it off and on. Whoever changes it answers for it from now on.',
      roles: AUTHORS,
      body: rulePatchBody,
      answers: { 200: { description: 'The rule, in force unless disabled.', schema: ruleAnswer } },
      async run({ context, principal, params, body: { expiresAt, ...patch } }) {
        const id = params['id'] ?? '';
        if (!(await context.store.rule(id))) return NOT_FOUND;
        const at = typeof expiresAt === 'string' ? Date.parse(expiresAt) : expiresAt;
        const manager = new RuleManager(context.store, () => context.now());
        const rule = await manager.change(id, { ...patch, ...(at !== undefined && { expiresAt: at }) }, principal);
        return changed(200, rule, 'rule changed', context, viewOf(principal));
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v1/rules/{id}',
      operation: 'removeRule',
      summary: 'Removes a rule.',
      roles: AUTHORS,
      answers: { 200: { description: 'It decides nothing any more.', schema: ruleAnswer } },
      async run({ context, principal, params }) {
        const id = params['id'] ?? '';
        if (!(await context.store.rule(id))) return NOT_FOUND;
        const rule = await new RuleManager(context.store, () => context.now()).remove(id, principal);
        return changed(200, rule, 'rule removed', context, viewOf(principal));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/rules/replay',
      operation: 'replayRule',
      summary: 'What a rule would have done with the requests of the last days, and what people decided on them.',
      roles: READERS,
      body: replayBody,
      answers: { 200: { description: 'The replay. Nothing is changed.', schema: replayAnswer } },
      async run({ context, principal, body: { rules, days = REPLAY_DAYS, requestId, expiresAt: _, ...one } }) {
        const repository = await repositoryOf(requestId, context, principal);
        const { decision, tool } = one;
        if (rules === undefined && (decision === undefined || tool === undefined))
          throw new DomainError('INVALID_ARGUMENT', 'Give a rule with decision and tool, or a list of rules.');
        const given = rules ?? [withMatch({ ...one, directory: one.directory ?? repository } as RuleFields)];
        const { requests, ...counts } = await replayRules(
          given.map((fields, at) => ({
            ...fields,
            id: String(at),
            createdBy: '',
            createdAt: 0,
            enabled: true,
            uses: 0,
          })),
          context.store,
          context.now() - days * DAY_MS,
        );
        const view = viewOf(principal);
        const json: ReplayAnswer = {
          ...counts,
          requests: await Promise.all(
            requests.map(async ({ by, at, ...request }) => ({ ...request, by: await view.nameOf(by), at: iso(at) })),
          ),
          warnings: [...new Set(given.flatMap((fields) => notesOn(fields)))],
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v1/rules/packs',
      operation: 'listRulePacks',
      summary: 'Packs of rules that come with the program. None is active by itself.',
      roles: READERS,
      answers: { 200: { description: 'The packs.', schema: packsAnswer } },
      async run() {
        const json: PacksAnswer = { packs: PACKS };
        return { status: 200, json };
      },
    }),
  ];
}

const NOT_FOUND: RouteResponse = {
  status: 404,
  json: { error: { code: 'NOT_FOUND', message: 'There is no such rule.' } },
};

async function repositoryOf(
  requestId: string | undefined,
  { store }: ApiContext,
  principal: Principal,
): Promise<string | undefined> {
  if (requestId === undefined) return undefined;
  const { request } = await visibleRequest(store, principal, requestId);
  const { scope, cwd } = RequestRecord.pick({ scope: true, cwd: true }).parse(request.ask);
  return scope?.repository ?? cwd;
}

async function changed(
  status: number,
  rule: StandingRule | undefined,
  what: string,
  context: ApiContext,
  view: ViewContext,
): Promise<RouteResponse> {
  if (!rule) throw new DomainError('INTERNAL', 'The rule is gone.');
  await announce([rule], what, context, view.principal);
  const json: RuleAnswer = { rule: await ruleView(rule, view, context) };
  return { status, json };
}

/** Resolves when the rules are in force here, which is before anyone is told. */
async function announce(
  rules: readonly StandingRule[],
  what: string,
  context: ApiContext,
  principal: Principal,
): Promise<void> {
  await context.rulesChanged?.();
  const client = context.clientFor(principal);
  for (const { id, decision, tool, directory = 'everywhere', enabled } of rules) {
    const details = { decision, tool, directory, enabled };
    client.record({ kind: 'server', what: `${what}: ${id}`, outcome: 'ok', details });
  }
}

async function ruleView(rule: StandingRule, view: ViewContext, context: ApiContext): Promise<ApiRule> {
  const { expiresAt, createdAt, lastUsedAt, ...shown } = rule;
  const warnings = notesOn(rule);
  const inactive = await inactivity(rule, context.store, context.now());
  return {
    ...shown,
    author: await view.nameOf(rule.createdBy),
    createdAt: iso(createdAt),
    ...(expiresAt !== undefined && { expiresAt: iso(expiresAt) }),
    ...(lastUsedAt !== undefined && { lastUsedAt: iso(lastUsedAt) }),
    ...(inactive && { inactive }),
    ...(warnings.length > 0 && { warnings }),
    mayChange: mayDecideOn(view.principal.role, rule),
  };
}
