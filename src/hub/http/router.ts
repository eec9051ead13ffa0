import { HttpRefusal } from './error-response.ts';
import type { Route } from './route.ts';

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the route for a path. A literal segment takes precedence over a parameter, whatever the order of the table. */
export class Router {
  readonly #routes: readonly { readonly route: Route; readonly segments: readonly string[] }[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes
      .map((route) => ({ route, segments: route.path.split('/') }))
      .sort((one, other) => parametersOf(one.segments) - parametersOf(other.segments));
    const keys = routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`);
    const twice = keys.find((key, index) => keys.indexOf(key) !== index);
    if (twice !== undefined) throw new Error(`There are two routes for ${twice}`);
  }

  /** Undefined if no route has this path; a refusal if one does, with a different method. */
  match(method: string, path: string): Match | undefined {
    const given = path.split('/');
    const allowed: string[] = [];
    for (const { route, segments } of this.#routes) {
      const params = paramsOf(segments, given);
      if (!params) continue;
      if (route.method === method) return { route, params };
      allowed.push(route.method);
    }
    if (allowed.length === 0) return undefined;
    throw new HttpRefusal(405, 'INVALID_ARGUMENT', `${path} takes ${allowed.join(', ')}.`, {
      allow: allowed.join(', '),
    });
  }
}

function parametersOf(segments: readonly string[]): number {
  return segments.filter((segment) => segment.startsWith('{')).length;
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const value = given[index] ?? '';
    if (segment.startsWith('{')) {
      const decoded = decode(value);
      if (decoded === undefined || decoded === '') return undefined;
      params[segment.slice(1, -1)] = decoded;
    } else if (segment !== value) return undefined;
  }
  return params;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
