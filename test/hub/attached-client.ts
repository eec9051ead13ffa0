/** Another client in a harness's home, of any era and toolset, with its own server process. */

import type { Client } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import { builtServer } from '../harness/built-server.ts';
import { connectClient, type ClientSetup, type FormRequest } from '../harness/connect-client.ts';
import type { Json } from '../harness/json.ts';
import type { Harness, ServerStart } from '../harness/open-harness.ts';
import { ServerProcess } from '../harness/server-process.ts';
import { ServerTransport } from '../harness/server-transport.ts';
import { SessionSteps } from '../harness/session-steps.ts';
import { callTool, expectError, expectOk, type CallOptions, type CallResult } from '../harness/tool-call.ts';
import type { Toolset } from '../harness/toolsets.ts';

export interface AttachedSetup extends Partial<ClientSetup>, Pick<ServerStart, 'env'> {
  readonly toolset?: Toolset;
}

export class AttachedClient extends SessionSteps {
  readonly server: ServerProcess;
  /** Every form shown to its user, oldest first. */
  readonly forms: FormRequest[];
  readonly #client: Client;

  private constructor(toolset: Toolset, server: ServerProcess, client: Client, forms: FormRequest[]) {
    super(toolset, (tool, args) => this.ok(tool, args));
    this.server = server;
    this.forms = forms;
    this.#client = client;
  }

  /** Closed when the test ends. */
  static async open(
    h: Harness,
    { era = 'modern', toolset = 'compact', form, env, ...setup }: AttachedSetup = {},
  ): Promise<AttachedClient> {
    const server = await ServerProcess.start({
      args: [builtServer()],
      cwd: h.project,
      env: h.environment({ CLAUDE_CODE_MCP_TOOLSET: toolset, ...env }),
    });
    onTestFinished(async () => {
      server.closeStdin();
      await server.exited;
    });
    const forms: FormRequest[] = [];
    const client = await connectClient(new ServerTransport(server), {
      ...setup,
      era,
      form:
        form &&
        ((request, withdrawn) => {
          forms.push(request);
          return form(request, withdrawn);
        }),
    });
    return new AttachedClient(toolset, server, client, forms);
  }

  call(tool: string, args: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<CallResult> {
    return callTool(this.#client, tool, args, options);
  }

  async ok(tool: string, args: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<Json> {
    return expectOk(tool, await this.call(tool, args, options));
  }

  async fails(
    tool: string,
    args: Readonly<Record<string, unknown>>,
    code: Parameters<typeof expectError>[2],
  ): Promise<string> {
    return expectError(tool, await this.call(tool, args), code);
  }
}
