import { createHash } from 'node:crypto';
import { DomainError } from '../../errors/errors.ts';
import { emptyBody } from '../../schema/api.ts';
import {
  pushAnswer,
  pushSubscriptionAnswer,
  pushSubscriptionBody,
  type PushAnswer,
  type PushSubscriptionAnswer,
  type PushSubscriptionView,
} from '../../schema/api-admin.ts';
import type { StoredSubscription } from '../../schema/store.ts';
import type { Store } from '../../store/contract.ts';
import type { Principal } from '../../engine/rules/access.ts';
import type { Credential } from '../auth/authenticate.ts';
import { HttpRefusal } from '../http/route.ts';
import { defineRoute, type ApiRoute } from './define-route.ts';
import { EVERY_ROLE, readsAll } from './rights.ts';
import { iso } from './views.ts';

/** Which browsers are notified when something waits. Each principal has its own. */
export function pushRoutes(): ApiRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v1/push',
      operation: 'getPush',
      summary: 'The key to subscribe with, and the browsers that are notified.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'The key and the subscriptions.', schema: pushAnswer } },
      async run({ context: { store, push }, principal, credential }) {
        const own = await subscriptionsOf(store, principal);
        const json: PushAnswer = {
          publicKey: push.publicKey,
          subscriptions: own.map((one) => subscriptionView(one, credential)),
        };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/push/subscriptions',
      operation: 'subscribeToPush',
      summary: 'Notifies this browser of what waits, until the credential used for this call ends.',
      roles: EVERY_ROLE,
      body: pushSubscriptionBody,
      answers: { 201: { description: 'It is subscribed.', schema: pushSubscriptionAnswer } },
      async run({ context, principal, credential, body: { endpoint, keys, name } }) {
        const { push } = context;
        if (credential?.kind !== 'stored')
          throw new DomainError(
            'PERMISSION_DENIED',
            'Sign in to the dashboard or use a token of the hub to subscribe.',
          );
        const subscription: StoredSubscription = {
          // A browser that subscribes again keeps its endpoint, or gets a new one.
          id: `p_${createHash('sha256').update(endpoint).digest('base64url').slice(0, 22).replace(/[-_]/g, 'x')}`,
          credential: credential.id,
          principal: principal.id,
          readsAll: readsAll(principal),
          ...(name !== undefined && { name }),
          endpoint,
          ...keys,
          createdAt: Math.trunc(context.now()),
        };
        await push.subscribe(subscription);
        const json: PushSubscriptionAnswer = { subscription: subscriptionView(subscription, credential) };
        return { status: 201, json };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v1/push/subscriptions/{id}',
      operation: 'unsubscribeFromPush',
      summary: 'Stops notifying a browser.',
      roles: EVERY_ROLE,
      answers: { 200: { description: 'It is no longer notified.', schema: pushSubscriptionAnswer } },
      async run({ context: { store }, principal, credential, params }) {
        const found = await subscriptionOf(store, principal, params['id']);
        await store.removeSubscription(found.id);
        const json: PushSubscriptionAnswer = { subscription: subscriptionView(found, credential) };
        return { status: 200, json };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v1/push/subscriptions/{id}/test',
      operation: 'testPush',
      summary: 'Sends a test notification, and waits for the push service to accept it.',
      roles: EVERY_ROLE,
      body: emptyBody,
      answers: { 200: { description: 'The push service has accepted it.', schema: pushSubscriptionAnswer } },
      async run({ context: { store, push }, principal, credential, params }) {
        const found = await subscriptionOf(store, principal, params['id']);
        const delivery = await push.test(found);
        if (delivery.outcome === 'gone') {
          await store.removeSubscription(found.id);
          throw unknownSubscription();
        }
        if (delivery.outcome !== 'delivered')
          throw new DomainError('UNAVAILABLE', `The notification was not accepted: ${delivery.why}.`);
        const json: PushSubscriptionAnswer = { subscription: subscriptionView(found, credential) };
        return { status: 200, json };
      },
    }),
  ];
}

async function subscriptionsOf(store: Pick<Store, 'subscriptions'>, { id }: Principal): Promise<StoredSubscription[]> {
  return (await store.subscriptions()).filter(({ principal }) => principal === id);
}

async function subscriptionOf(
  store: Pick<Store, 'subscriptions'>,
  principal: Principal,
  id: string | undefined,
): Promise<StoredSubscription> {
  const found = (await subscriptionsOf(store, principal)).find((one) => one.id === id);
  if (!found) throw unknownSubscription();
  return found;
}

function unknownSubscription(): HttpRefusal {
  return new HttpRefusal(404, 'NOT_FOUND', 'There is no such subscription: this browser is not notified any more.');
}

function subscriptionView(row: StoredSubscription, credential: Credential | undefined): PushSubscriptionView {
  const { id, name, endpoint, createdAt } = row;
  return {
    id,
    ...(name !== undefined && { name }),
    service: new URL(endpoint).host,
    createdAt: iso(createdAt),
    current: credential?.kind === 'stored' && credential.id === row.credential,
  };
}
