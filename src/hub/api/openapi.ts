import { z } from 'zod';
import {
  apiError,
  apiPrincipal,
  apiRequest,
  apiSession,
  apiSessionDetail,
  requestOutcome,
  signInAnswer,
  signInBody,
} from '../../schema/api.ts';
import { apiEvent, STREAM_MESSAGES } from '../../schema/api-events.ts';
import { apiToken } from '../../schema/api-admin.ts';
import { EventBody } from '../../schema/events.ts';
import { callResult } from '../../schema/results.ts';
import { defineRoute, type ApiAnswer, type ApiRoute } from './define-route.ts';
import { EVERY_ROLE } from './rights.ts';

type Json = Record<string, unknown>;

/** Errors that any route may return. */
const ERRORS: Readonly<Record<string, string>> = {
  400: 'The call is invalid; the message says why.',
  401: 'No valid credential.',
  403: 'Forbidden by the role or by one of the operator’s rules.',
  404: 'It does not exist, or belongs to someone else.',
  409: 'Not possible in this state: busy, or cancelled.',
  429: 'Too many sessions, or too many calls.',
  500: 'Unexpected; the hub’s log says more.',
  503: 'The store or another machine is unavailable; nothing was done.',
};

/** Of routes that take a body. */
const BODY_ERRORS: Readonly<Record<string, string>> = {
  413: 'The body is too large.',
  415: 'The body is not sent as application/json.',
};

const AUTHENTICATION = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'A token from `claude-code-mcp token create`, or an OAuth token.',
  },
  signIn: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Claude-Code-Key',
    description: 'The key returned by a sign-in, together with its cookie.',
  },
};

/** Schemas used by several responses are defined once, under this name. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  Error: apiError,
  Event: apiEvent,
  EventData: EventBody,
  Outcome: requestOutcome,
  Principal: apiPrincipal,
  Request: apiRequest,
  Result: callResult,
  Session: apiSession,
  SessionDetail: apiSessionDetail,
  Token: apiToken,
};

const names = z.registry<{ id: string }>();
for (const [id, schema] of Object.entries(NAMED)) names.add(schema, { id });

/** The OpenAPI 3.1 document of these routes. */
export function openApiDocument(routes: readonly ApiRoute[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'claude-code-mcp hub',
      version,
      description: 'Claude Code sessions: start, watch, answer, stop. Writes accept an Idempotency-Key.',
    },
    security: [{ bearer: [] }, { signIn: [] }],
    paths: { ...paths, '/api/v1/sign-in': { post: signIn() } },
    components: {
      securitySchemes: AUTHENTICATION,
      schemas: {
        ...Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => [name, withReferences(schema, 'output')])),
        ...Object.fromEntries(
          Object.entries(STREAM_MESSAGES).map(([name, schema]) => [`Stream_${name}`, schemaOf(schema)]),
        ),
      },
    },
  };
}

export function openApiRoute(others: readonly ApiRoute[]): ApiRoute {
  let document: Json | undefined;
  const route: ApiRoute = defineRoute({
    method: 'GET',
    path: '/api/v1/openapi.json',
    operation: 'getOpenApi',
    summary: 'This document.',
    roles: EVERY_ROLE,
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.looseObject({ openapi: z.string() }) } },
    async run({ context: { version } }) {
      document ??= openApiDocument([...others, route], version);
      return { status: 200, json: document };
    },
  });
  return route;
}

function operation(route: ApiRoute): Json {
  const { operation: operationId, summary, roles, method, path, query, body, answers } = route;
  const headers = method === 'GET' ? [] : [IDEMPOTENCY_KEY];
  const parameters = [...pathParameters(path), ...queryParameters(query), ...headers];
  return {
    operationId,
    summary,
    description: `For ${roles.join(', ')}.`,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: !accepts(body, {}), content: json(schemaOf(body, 'input')) } }),
    responses: {
      ...errorResponses(body && BODY_ERRORS),
      ...Object.fromEntries(Object.entries(answers).map(response)),
    },
  };
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'A repeat with the same key gets the stored answer.',
  schema: { type: 'string', maxLength: 200 },
};

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function queryParameters(query: z.ZodObject | undefined): Json[] {
  if (!query) return [];
  const { properties = {}, required = [] } = schemaOf(query, 'input') as { properties?: Json; required?: string[] };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    // A number parsed from text has no type of its own.
    schema: schema as Json,
  }));
}

function response([status, { description, schema, contentType }]: [string, ApiAnswer]): [string, Json] {
  const content = schema ? { [contentType ?? 'application/json']: { schema: schemaOf(schema) } } : undefined;
  const text = !schema && contentType !== undefined ? { [contentType]: { schema: { type: 'string' } } } : undefined;
  return [status, { description, ...((content ?? text) && { content: content ?? text }) }];
}

function errorResponses(more: Readonly<Record<string, string>> = {}): Json {
  const schema = { $ref: '#/components/schemas/Error' };
  return Object.fromEntries(
    Object.entries({ ...ERRORS, ...more }).map(([status, description]) => [
      status,
      { description, content: json(schema) },
    ]),
  );
}

/** The exchange itself is served elsewhere, and requires no credential. */
function signIn(): Json {
  return {
    operationId: 'signIn',
    summary: 'Signs a browser in with the code from `hub open` or with a token; sets a cookie and returns its key.',
    security: [],
    requestBody: { required: true, content: json(schemaOf(signInBody, 'input')) },
    responses: {
      ...errorResponses(BODY_ERRORS),
      200: { description: 'Signed in.', content: json(schemaOf(signInAnswer)) },
    },
  };
}

function json(schema: Json): Json {
  return { 'application/json': { schema } };
}

function accepts(schema: z.ZodType, value: unknown): boolean {
  return schema.safeParse(value).success;
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output' = 'output'): Json {
  const name = names.get(schema)?.id;
  return name === undefined ? withReferences(schema, io) : { $ref: `${COMPONENTS}${name}` };
}

const COMPONENTS = '#/components/schemas/';

function withReferences(schema: z.ZodType, io: 'input' | 'output'): Json {
  const made = z.toJSONSchema(schema, { io, metadata: names, unrepresentable: 'any', target: 'draft-2020-12' });
  const own = made.$defs?.[names.get(schema)?.id ?? ''] ?? made;
  const { $schema: _dialect, $defs: _named, id: _name, ...rest } = own as Json;
  return JSON.parse(JSON.stringify(rest).replaceAll('"#/$defs/', `"${COMPONENTS}`)) as Json;
}
