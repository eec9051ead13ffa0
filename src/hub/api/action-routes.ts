import { isDeepStrictEqual } from 'node:util';
import type { EngineClient } from '../../engine/client.ts';
import type { Asked } from '../../engine/requests/own-actions.ts';
import type { Driven, Started } from '../../engine/elsewhere/elsewhere.ts';
import { DomainError } from '../../errors/errors.ts';
import { defined } from '../../schema/json.ts';
import type { WhenBusy } from '../../schema/enums.ts';
import {
  applyAnswer,
  applyBody,
  archiveBody,
  discardAnswer,
  discardBody,
  emptyBody,
  forkBody,
  messageBody,
  queuedMessageBody,
  renameBody,
  rewindAnswer,
  rewindBody,
  startBody,
  stopAnswer,
  turnAnswer,
  type ApiSession,
  type ApplyAnswer,
  type DiscardAnswer,
  type RewindAnswer,
  type StopAnswer,
  type TurnAnswer,
} from '../../schema/api.ts';
import { attemptList } from '../../schema/commands.ts';
import type { SessionOptions } from '../../schema/session-options.ts';
import { appliedView, othersView } from '../../views/session-view.ts';
import type { RouteResponse } from '../http/route.ts';
import type { Principal } from '../../engine/rules/access.ts';
import { expandHome } from './admin-routes.ts';
import { defineRoute, type ApiCall, type ApiRoute } from './define-route.ts';
import { DRIVERS, STOPPERS, visibleSession } from './rights.ts';
import { storedSession } from './session-routes.ts';
import type { ViewContext } from './views.ts';

/** Prompts and inputs can be long. */
const LONG_BODY = 4 * 1024 * 1024;

const AWAITS = { description: 'A person must approve it first; it runs once the request is allowed.' };

/** Routes that change sessions. */
export function actionRoutes(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  const turned = async (
    call: ApiCall<unknown, unknown>,
    status: number,
    { sessionId, warnings, attempts }: Started,
  ): Promise<RouteResponse> => {
    const { context, principal } = call;
    await context.stored();
    const shown = (id: string): Promise<ApiSession> => storedSession(context, id, viewOf(principal));
    const told = new Set([...warnings, ...(attempts?.flatMap((one) => one.warnings) ?? [])]);
    const json: TurnAnswer = {
      session: await shown(sessionId),
      ...(attempts && { attempts: await Promise.all(attempts.map((one) => shown(one.sessionId))) }),
      ...(told.size > 0 && { warnings: [...told] }),
    };
    return { status, json };
  };

  const stopped = async (
    { context, principal, params }: ApiCall<unknown, unknown>,
    stop: (client: EngineClient, id: string) => Promise<boolean>,
  ): Promise<RouteResponse> => {
    const { id } = await visibleSession(context.store, principal, params['id'] ?? '');
    const client = context.clientFor(principal);
    const done = await stop(client, id);
    await context.stored();
    const json: StopAnswer = { session: await storedSession(context, id, viewOf(principal)), done };
    return { status: 200, json };
  };

  const withdrawn = (call: ApiCall<unknown, unknown>, replacement?: string): Promise<RouteResponse> =>
    stopped(call, (client, sessionId) =>
      client.execute<'withdraw'>({
        kind: 'withdraw',
        sessionId,
        messageId: call.params['message'] ?? '',
        ...(replacement !== undefined && { replacement }),
      }),
    );

  return [
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions',
      operation: 'startSession',
      summary: 'Starts a session and returns once Claude Code has started. Requires cwd or a workspace.',
      roles: DRIVERS,
      body: startBody,
      maxBodyBytes: LONG_BODY,
      answers: { 201: { description: 'It has started.', schema: turnAnswer } },
      async run(call) {
        const { prompt, attempts, advanced = {}, ...top } = call.body;
        refuseContradictions(top, advanced);
        const { cwd } = top;
        const options: SessionOptions = defined({ ...advanced, ...top, cwd: cwd && expandHome(cwd) });
        if (options.cwd === undefined && options.workspace === undefined)
          throw new DomainError('INVALID_ARGUMENT', 'cwd: specify the directory that the session works in.');
        const client = call.context.clientFor(call.principal);
        const started = { ...(attempts !== undefined && { attempts: attemptList(attempts) }), options };
        const command = { kind: 'start', prompt, ...started, defaults: { permissionMode: 'default' } } as const;
        return turned(call, 201, await client.execute<'start'>(command));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/messages',
      operation: 'sendMessage',
      summary: 'Sends the next message; a working session takes it up when it can.',
      roles: DRIVERS,
      body: messageBody,
      maxBodyBytes: LONG_BODY,
      answers: { 200: { description: 'It was delivered.', schema: turnAnswer } },
      async run(call) {
        return turned(call, 200, await reply(call, { ...call.body, fork: false }));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/fork',
      operation: 'forkSession',
      summary: 'Sends a message to a copy of the session with a new id.',
      roles: DRIVERS,
      body: forkBody,
      maxBodyBytes: LONG_BODY,
      answers: { 201: { description: 'The copy has started.', schema: turnAnswer } },
      async run(call) {
        return turned(call, 201, await reply(call, { ...call.body, fork: true }));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/interrupt',
      operation: 'interruptSession',
      summary: 'Stops the turn; the session accepts messages afterwards.',
      roles: STOPPERS,
      body: emptyBody,
      answers: { 200: { description: 'The turn has stopped, if there was one.', schema: stopAnswer } },
      run: (call) =>
        stopped(call, (client, sessionId) => client.execute<'interrupt'>({ kind: 'interrupt', sessionId })),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/rename',
      operation: 'renameSession',
      summary: 'Gives the session another title.',
      roles: DRIVERS,
      body: renameBody,
      answers: { 200: { description: 'It has the title now.', schema: stopAnswer } },
      run: (call) =>
        stopped(call, (client, sessionId) =>
          client.execute<'rename'>({ kind: 'rename', sessionId, title: call.body.title }),
        ),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/archive',
      operation: 'archiveSession',
      summary: 'Puts a session at rest away, so that lists leave it out, or takes it back.',
      roles: DRIVERS,
      body: archiveBody,
      answers: { 200: { description: 'It is where it was wanted.', schema: stopAnswer } },
      run: (call) =>
        stopped(call, (client, sessionId) => client.execute<'archive'>({ kind: 'archive', sessionId, ...call.body })),
    }),
    defineRoute({
      method: 'PATCH',
      path: '/api/v1/sessions/{id}/messages/{message}',
      operation: 'changeMessage',
      summary: 'Puts other words in the place of a message that is still queued, at the end of the queue.',
      roles: DRIVERS,
      body: queuedMessageBody,
      maxBodyBytes: LONG_BODY,
      answers: { 200: { description: 'Whether it was still queued.', schema: stopAnswer } },
      run: (call) => withdrawn(call, call.body.prompt),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v1/sessions/{id}/messages/{message}',
      operation: 'withdrawMessage',
      summary: 'Takes back a message that is still queued.',
      roles: DRIVERS,
      answers: { 200: { description: 'Whether it was still queued.', schema: stopAnswer } },
      run: (call) => withdrawn(call),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/cancel',
      operation: 'cancelSession',
      summary: 'Ends the session permanently, with all its processes.',
      roles: STOPPERS,
      body: emptyBody,
      answers: { 200: { description: 'It is cancelled.', schema: stopAnswer } },
      run: (call) => stopped(call, (client, sessionId) => client.execute<'cancel'>({ kind: 'cancel', sessionId })),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/rewind',
      operation: 'rewindSession',
      summary: 'Restores files to their state before a message; a dry run reports which.',
      roles: DRIVERS,
      body: rewindBody,
      answers: {
        200: { description: 'What was restored, or would be.', schema: rewindAnswer },
        202: { ...AWAITS, schema: rewindAnswer },
      },
      run: (call) =>
        acting(
          call,
          (client, sessionId) => client.execute<'rewind'>({ kind: 'rewind', sessionId, ...call.body }),
          ({ dryRun, files, left, lines }): RewindAnswer => ({
            outcome: 'done',
            dryRun,
            files: [...files],
            left: left.map(({ path, why }) => ({ path, why })),
            ...(lines && { lines }),
          }),
        ),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/apply',
      operation: 'applyWork',
      summary:
        'Applies the work of a worktree to its base, all or nothing; can discard the other attempts of the same start.',
      roles: DRIVERS,
      body: applyBody,
      answers: {
        200: { description: 'Where the work is now.', schema: applyAnswer },
        202: { ...AWAITS, schema: applyAnswer },
      },
      run: (call) =>
        acting(
          call,
          (client, sessionId) => client.execute<'apply'>({ kind: 'apply', sessionId, ...call.body }),
          (applied): ApplyAnswer => {
            if (applied.outcome === 'nothing-to-apply')
              return { outcome: 'nothing_to_apply', ...othersView(applied.others) };
            const { commit } = applied;
            const shown = appliedView(applied, (id) => `POST /api/v1/sessions/${id}/discard`);
            return { outcome: 'applied', ...shown, ...defined({ commit }) };
          },
        ),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/sessions/{id}/discard',
      operation: 'discardWork',
      summary:
        'Removes the worktree; unmerged work requires force, and its branch is kept unless deleteBranch is given.',
      roles: DRIVERS,
      body: discardBody,
      answers: {
        200: { description: 'What was removed and what was kept.', schema: discardAnswer },
        202: { ...AWAITS, schema: discardAnswer },
      },
      run: (call) =>
        acting(
          call,
          (client, sessionId) => client.execute<'discard'>({ kind: 'discard', sessionId, ...call.body }),
          ({ path, keptBranches, deletedBranch, retired, keptDirectory }): DiscardAnswer => ({
            outcome: 'discarded',
            path,
            keptBranches: [...keptBranches],
            ...defined({ deletedBranch, retired, keptDirectory }),
          }),
        ),
    }),
  ];
}

/** An option may be given under `advanced` and at top level, but it can only mean one thing. */
function refuseContradictions(
  top: Readonly<Record<string, unknown>>,
  advanced: Readonly<Record<string, unknown>>,
): void {
  for (const [name, value] of Object.entries(advanced))
    if (value !== undefined && top[name] !== undefined && !isDeepStrictEqual(top[name], value))
      throw new DomainError(
        'INVALID_ARGUMENT',
        `${name} is given twice with different values, as ${name} and as advanced.${name}.`,
      );
}

interface Turn {
  readonly prompt: string;
  readonly fork: boolean;
  readonly whenBusy?: WhenBusy;
  readonly model?: string | undefined;
  readonly permissionMode?: SessionOptions['permissionMode'];
}

async function reply({ context, principal, params }: ApiCall<unknown, unknown>, turn: Turn): Promise<Driven> {
  const { id } = await visibleSession(context.store, principal, params['id'] ?? '');
  return context.clientFor(principal).execute<'reply'>({
    kind: 'reply',
    ...turn,
    sessionId: id,
    disk: { kind: 'token', token: undefined, options: {}, defaults: { permissionMode: 'default' } },
  });
}

/** Something that may need a person's approval first: the call does not wait for it. */
async function acting<Body, Outcome extends object>(
  { context, principal, params }: ApiCall<unknown, Body>,
  act: (client: EngineClient, id: string) => Promise<Outcome | Asked>,
  answer: (outcome: Outcome) => object,
): Promise<RouteResponse> {
  const { id } = await visibleSession(context.store, principal, params['id'] ?? '');
  const outcome = await act(context.clientFor(principal), id);
  await context.stored();
  if ('asked' in outcome) return { status: 202, json: { outcome: 'awaits_person', requestId: outcome.asked } };
  return { status: 200, json: answer(outcome) };
}
