/** Plain HTTP answers in the words of the Anthropic API. */

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { HttpErrorDetails } from './reply.ts';

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: OutgoingHttpHeaders = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function sendError(
  response: ServerResponse,
  requestId: string,
  status: number,
  { type, message, retryAfter }: HttpErrorDetails = {},
): void {
  const error = {
    type: type ?? ERROR_TYPES[status] ?? 'api_error',
    message: message ?? `scripted error ${status}`,
  };
  const headers: OutgoingHttpHeaders = { 'request-id': requestId };
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  sendJson(response, status, { type: 'error', error, request_id: requestId }, headers);
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};
