import {
  inputRequired,
  inputResponse,
  type InputRequiredResult,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { declaredCapabilities, handshakeOf } from './forms/client-forms.ts';

/** Where a session works if its caller names no directory and the client has a folder open. */
export type DefaultDirectory = { readonly directory: string | undefined } | { readonly ask: InputRequiredResult };

const NONE: DefaultDirectory = { directory: undefined };
/** A client that declares roots but does not list them must not block a start. */
const ANSWER_WITHIN_MS = 2_000;
const KEY = 'roots';

/** The first root of a client up to 2025-11-25, which the server can ask at any time. */
export class ConnectionRoots {
  readonly #server: McpServer['server'];
  #known: Promise<DefaultDirectory> | undefined;

  constructor(server: McpServer['server']) {
    this.#server = server;
    server.setNotificationHandler('notifications/roots/list_changed', () => {
      this.#known = undefined;
    });
  }

  first(): Promise<DefaultDirectory> {
    if (handshakeOf(this.#server).capabilities?.roots === undefined) return Promise.resolve(NONE);
    // Also remembered for a client that did not answer: the next start need not wait for it again.
    return (this.#known ??= this.#list());
  }

  async #list(): Promise<DefaultDirectory> {
    try {
      const { roots } = await this.#server.request({ method: 'roots/list' }, { timeout: ANSWER_WITHIN_MS });
      return { directory: firstDirectory(roots) };
    } catch {
      return NONE;
    }
  }
}

/** Like above for a 2026-07-28 client, which is asked by ending the call and is then called again with the answer. */
export function rootsOfCall(ctx: ServerContext): DefaultDirectory {
  if (declaredCapabilities(ctx)?.roots === undefined) return NONE;
  if (ctx.mcpReq.inputResponses === undefined)
    return { ask: inputRequired({ inputRequests: { [KEY]: inputRequired.listRoots() } }) };
  const response = inputResponse(ctx.mcpReq.inputResponses, KEY);
  return response.kind === 'roots' ? { directory: firstDirectory(response.roots) } : NONE;
}

/** There may be none on another machine, or with a workspace that is not a folder. */
function firstDirectory(roots: readonly { readonly uri: string }[]): string | undefined {
  const [uri] = roots.map((root) => root.uri).filter((candidate) => candidate.startsWith('file:'));
  if (uri === undefined) return undefined;
  try {
    const directory = fileURLToPath(uri);
    return statSync(directory).isDirectory() ? directory : undefined;
  } catch {
    return undefined;
  }
}
