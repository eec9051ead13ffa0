/** A real MCP client, pinned to one era of the protocol, with a person at its forms if the test wants one. */

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
  /** Answers the forms that the server shows; with it the client declares that it can show them. */
  readonly form?: Form | undefined;
  readonly capabilities?: ClientCapabilities | undefined;
  readonly clientOptions?: ClientOptions | undefined;
}

/** Legacy opens with `initialize`; modern asks `server/discover` for exactly this revision and does not fall back. */
const NEGOTIATION: Readonly<Record<Era, ClientOptions>> = {
  legacy: { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: ['2025-11-25'] },
  modern: { versionNegotiation: { mode: { pin: '2026-07-28' } } },
};

/** Every server has the same schemas, and compiling them takes longer than all the calls of a short test. */
class CompiledOnce extends AjvJsonSchemaValidator {
  readonly #compiled = new Map<string, JsonSchemaValidator<unknown>>();

  override getValidator<T>(schema: JsonSchemaType): JsonSchemaValidator<T> {
    const key = JSON.stringify(schema);
    const compiled = this.#compiled.get(key) ?? super.getValidator<unknown>(schema);
    this.#compiled.set(key, compiled);
    return compiled as JsonSchemaValidator<T>;
  }
}

const jsonSchemaValidator = new CompiledOnce();

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
      if (params.mode === 'url') throw new Error(`The test answers forms, not URLs: ${params.url}`);
      return form(params, mcpReq.signal);
    });
  }
  await client.connect(transport, { timeout: CONNECT_TIMEOUT_MS });
  // From now on the client checks each answer against the tool's outputSchema.
  await client.listTools();
  return client;
}

const CONNECT_TIMEOUT_MS = 30_000;
