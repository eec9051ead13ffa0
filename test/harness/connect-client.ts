/** A real MCP client pinned to one era of the protocol, which answers forms if the test provides answers. */

import {
  Client,
  type ClientCapabilities,
  type ClientOptions,
  type ElicitRequestFormParams,
  type ElicitResult,
  type JsonSchemaType,
  type JsonSchemaValidator,
  type Transport,
} from '@modelcontextprotocol/client';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';

export type Era = 'legacy' | 'modern';

export const ERAS: readonly Era[] = ['legacy', 'modern'];

export type FormRequest = ElicitRequestFormParams;
export type FormAnswer = ElicitResult;
/** The signal is aborted when the server withdraws the form. */
export type Form = (request: FormRequest, withdrawn: AbortSignal) => FormAnswer | Promise<FormAnswer>;

export interface ClientSetup {
  readonly era: Era;
  /** Answers the server's forms; if set, the client declares that it supports them. */
  readonly form?: Form | undefined;
  readonly capabilities?: ClientCapabilities | undefined;
  readonly clientOptions?: ClientOptions | undefined;
}

/** Legacy starts with `initialize`; modern asks `server/discover` for exactly this revision, without a fallback. */
const NEGOTIATION: Readonly<Record<Era, ClientOptions>> = {
  legacy: { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: ['2025-11-25'] },
  modern: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
};

/** All servers have the same schemas, and compiling them takes longer than all calls of a short test. */
class CachingValidator extends AjvJsonSchemaValidator {
  readonly #compiled = new Map<string, JsonSchemaValidator<unknown>>();

  override getValidator<T>(schema: JsonSchemaType): JsonSchemaValidator<T> {
    const key = JSON.stringify(schema);
    const compiled = this.#compiled.get(key) ?? super.getValidator<unknown>(schema);
    this.#compiled.set(key, compiled);
    return compiled as JsonSchemaValidator<T>;
  }
}

const jsonSchemaValidator = new CachingValidator();

export async function connectClient(transport: Transport, setup: ClientSetup): Promise<Client> {
  const { era, form, capabilities, clientOptions } = setup;
  const client = new Client(
    { name: 'claude-code-mcp-test', version: '1.0.0' },
    {
      jsonSchemaValidator,
      ...clientOptions,
      ...NEGOTIATION[era],
      capabilities: { ...(form === undefined ? {} : { elicitation: { form: {} } }), ...capabilities },
    },
  );
  if (form !== undefined) {
    client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) => {
      if (params.mode === 'url') throw new Error(`The test answers forms only, not URLs: ${params.url}`);
      return form(params, mcpReq.signal);
    });
  }
  await client.connect(transport, { timeout: CONNECT_TIMEOUT_MS });
  // From now on the client checks each answer against the tool's outputSchema.
  await client.listTools();
  return client;
}

const CONNECT_TIMEOUT_MS = 30_000;
