import type { Route } from '../http/route.ts';
import type { Principal } from '../../engine/rules/principal.ts';
import { actionRoutes } from './action-routes.ts';
import { adminRoutes } from './admin-routes.ts';
import type { ApiContext } from './context.ts';
import { served, type ApiRoute } from './define-route.ts';
import { openApiRoute } from './openapi.ts';
import { PrincipalNames } from './principal-names.ts';
import { requestRoutes } from './request-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { streamRoutes } from './stream-routes.ts';
import type { ViewContext } from './views.ts';

/** Everything under `/api/v1`, in the order of the document. */
export function apiRouteTable(viewOf: (principal: Principal) => ViewContext): ApiRoute[] {
  return [
    ...sessionRoutes(viewOf),
    ...actionRoutes(viewOf),
    ...requestRoutes(viewOf),
    ...streamRoutes(viewOf),
    ...adminRoutes(),
  ];
}

export function apiRoutes(context: ApiContext): Route[] {
  const names = new PrincipalNames(context.store);
  const { approvals, allowSensitiveSessionDetails: showsDetails } = context.settings;
  const viewOf = (principal: Principal): ViewContext => ({
    ...{ principal, approvals, showsDetails },
    nameOf: (id) => names.of(id),
  });
  const table = apiRouteTable(viewOf);
  return served([...table, openApiRoute(table)], context);
}
