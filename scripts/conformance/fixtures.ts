/** What the official conformance suite expects of a server: tools, resources and prompts with specific names and answers. */

import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  completable,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  McpServer,
  ResourceTemplate,
  type CallToolResult,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { declaredCapabilities } from '../../src/mcp/forms/client-forms.ts';

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const NOTHING = z.object({});

const states = createRequestStateCodec<{ step: number }>({ key: randomBytes(32), ttlSeconds: 600 });

const text = (words: string): CallToolResult => ({ content: [{ type: 'text', text: words }] });
const askName = inputRequired.elicit({ message: 'What is your name?', requestedSchema: schemaOf('name') });

interface Schema {
  [key: string]: unknown;
  type: 'object';
  properties: Record<string, { type: 'string' } | { type: 'boolean' }>;
  required: string[];
}

function schemaOf(name: string, type: 'string' | 'boolean' = 'string'): Schema {
  return { type: 'object', properties: { [name]: { type } }, required: [name] };
}

export function conformanceServer(): McpServer {
  const server = new McpServer(
    { name: 'claude-code-mcp-conformance', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: states,
    },
  );
  addTools(server);
  addAskingTools(server);
  addInputTools(server);
  addPrompts(server);
  addResources(server);
  return server;
}

function addTools(server: McpServer): void {
  const add = (name: string, run: (ctx: ServerContext) => CallToolResult | Promise<CallToolResult>): void => {
    server.registerTool(name, { description: `Fixture ${name}`, inputSchema: NOTHING }, (_args, ctx) => run(ctx));
  };
  const embedded = {
    uri: 'test://embedded-resource',
    mimeType: 'text/plain',
    text: 'This is an embedded resource content.',
  };
  const mixed = {
    uri: 'test://mixed-content-resource',
    mimeType: 'application/json',
    text: '{"test":"data","value":123}',
  };
  const image = { type: 'image' as const, data: PIXEL, mimeType: 'image/png' };
  add('test_simple_text', () => text('This is a simple text response for testing.'));
  add('test_image_content', () => ({ content: [image] }));
  add('test_audio_content', () => ({ content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] }));
  add('test_embedded_resource', () => ({ content: [{ type: 'resource', resource: embedded }] }));
  add('test_multiple_content_types', () => ({
    content: [{ type: 'text', text: 'Multiple content types test:' }, image, { type: 'resource', resource: mixed }],
  }));
  add('test_error_handling', () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  add('test_tool_with_logging', async ({ mcpReq }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
      await pause(50);
    }
    return text('Logged.');
  });
  add('test_tool_with_progress', async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await pause(50);
    }
    return text('Done.');
  });
  // Logs only if the request asked for it, which it does with a level in 2026-07-28.
  add('test_logging_tool', () => text('Nothing to log.'));
  add('test_reconnection', async () => {
    await pause(100);
    return text('Reconnection test completed.');
  });
  server.registerTool(
    'test_custom_headers',
    {
      description: 'Fixture test_custom_headers',
      inputSchema: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
    },
    ({ region }) => text(region),
  );
}

/** Tools that send requests to an older client while they run. */
function addAskingTools(server: McpServer): void {
  const low = server.server;
  const elicit = async (message: string, requestedSchema: object): Promise<string> => {
    const answer = await low.request({
      method: 'elicitation/create',
      params: { mode: 'form', message, requestedSchema },
    });
    return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
  };
  server.registerTool(
    'test_sampling',
    { description: 'Fixture test_sampling', inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }) => {
      const { content } = await low.request({
        method: 'sampling/createMessage',
        params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 },
      });
      const [first] = Array.isArray(content) ? content : [content];
      return text(`LLM response: ${first?.type === 'text' ? first.text : ''}`);
    },
  );
  server.registerTool(
    'test_elicitation',
    { description: 'Fixture test_elicitation', inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => {
      const properties = {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      };
      return text(
        `User response: ${await elicit(message, { type: 'object', properties, required: Object.keys(properties) })}`,
      );
    },
  );
  const ask = (name: string, properties: object): void => {
    server.registerTool(name, { description: `Fixture ${name}`, inputSchema: NOTHING }, async () =>
      text(`Elicitation completed: ${await elicit(name, { type: 'object', properties, required: [] })}`),
    );
  };
  ask('test_elicitation_sep1034_defaults', {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  });
  const options = ['option1', 'option2', 'option3'];
  const titled = (word: string): object[] =>
    ['First', 'Second', 'Third'].map((which, index) => ({ const: `value${index + 1}`, title: `${which} ${word}` }));
  ask('test_elicitation_sep1330_enums', {
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled('Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
  });
}

/** Tools that end with a question, and are called again with the answer. */
function addInputTools(server: McpServer): void {
  const add = (name: string, run: (ctx: ServerContext) => unknown): void => {
    server.registerTool(
      name,
      { description: `Fixture ${name}`, inputSchema: NOTHING },
      (_args, ctx) => run(ctx) as CallToolResult,
    );
  };
  const answered = ({ mcpReq }: ServerContext, key: string): Record<string, unknown> | undefined => {
    const response = inputResponse(mcpReq.inputResponses, key);
    return response.kind === 'elicit' && response.action === 'accept' ? response.content : undefined;
  };
  const isKind = ({ mcpReq }: ServerContext, key: string, kind: string): boolean =>
    inputResponse(mcpReq.inputResponses, key).kind === kind;
  const sample = (prompt: string, maxTokens: number): ReturnType<typeof inputRequired.createMessage> =>
    inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens });
  const confirm = inputRequired.elicit({ message: 'Please confirm', requestedSchema: schemaOf('ok', 'boolean') });
  const stepAt = (ctx: ServerContext): number => ctx.mcpReq.requestState<{ step: number }>()?.step ?? 0;

  add('test_input_required_result_elicitation', (ctx) => {
    const name = answered(ctx, 'user_name')?.['name'];
    return typeof name === 'string'
      ? text(`Hello, ${name}!`)
      : inputRequired({ inputRequests: { user_name: askName } });
  });
  add('test_input_required_result_sampling', (ctx) =>
    isKind(ctx, 'capital_question', 'sampling')
      ? text(JSON.stringify(ctx.mcpReq.inputResponses))
      : inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } }),
  );
  add('test_input_required_result_list_roots', (ctx) =>
    isKind(ctx, 'client_roots', 'roots')
      ? text(JSON.stringify(ctx.mcpReq.inputResponses))
      : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } }),
  );
  for (const name of ['test_input_required_result_request_state', 'test_input_required_result_tampered_state'])
    add(name, async (ctx) =>
      answered(ctx, 'confirm') && stepAt(ctx) === 1
        ? text('state-ok')
        : inputRequired({ inputRequests: { confirm }, requestState: await states.mint({ step: 1 }) }),
    );
  add('test_input_required_result_multiple_inputs', async (ctx) =>
    answered(ctx, 'user_name') && isKind(ctx, 'greeting', 'sampling') && isKind(ctx, 'client_roots', 'roots')
      ? text('All there.')
      : inputRequired({
          inputRequests: {
            user_name: askName,
            greeting: sample('Generate a greeting', 50),
            client_roots: inputRequired.listRoots(),
          },
          requestState: await states.mint({ step: 1 }),
        }),
  );
  add('test_input_required_result_multi_round', async (ctx) => {
    const step = stepAt(ctx);
    if (step === 2 && answered(ctx, 'step2')) return text('Both steps done.');
    const second = step === 1 && answered(ctx, 'step1') !== undefined;
    const message = second ? 'Step 2: What is your favorite color?' : 'Step 1: What is your name?';
    const form = inputRequired.elicit({ message, requestedSchema: schemaOf(second ? 'color' : 'name') });
    return inputRequired({
      inputRequests: { [second ? 'step2' : 'step1']: form },
      requestState: await states.mint({ step: second ? 2 : 1 }),
    });
  });
  add('test_input_required_result_capabilities', (ctx) => {
    const declared = declaredCapabilities(ctx);
    return inputRequired({
      inputRequests: {
        ...(declared?.elicitation && { user_name: askName }),
        ...(declared?.sampling && { greeting: sample('Generate a greeting', 50) }),
      },
    });
  });
  add('test_streaming_elicitation', () => inputRequired({ inputRequests: { user_name: askName } }));
  add('test_missing_capability', () => inputRequired({ inputRequests: { question: sample('Anything', 10) } }));
  server.registerPrompt('test_input_required_result_prompt', { description: 'Fixture' }, ((ctx: ServerContext) => {
    const context = answered(ctx, 'user_context')?.['context'];
    if (typeof context !== 'string') {
      const form = inputRequired.elicit({
        message: 'What context should the prompt use?',
        requestedSchema: schemaOf('context'),
      });
      return inputRequired({ inputRequests: { user_context: form } });
    }
    return { messages: [{ role: 'user', content: { type: 'text', text: `Context: ${context}` } }] };
  }) as never);
}

function addPrompts(server: McpServer): void {
  const say = (words: string): { role: 'user'; content: { type: 'text'; text: string } } => ({
    role: 'user',
    content: { type: 'text', text: words },
  });
  server.registerPrompt('test_simple_prompt', { description: 'Fixture' }, () => ({
    messages: [say('This is a simple prompt for testing.')],
  }));
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'Fixture',
      argsSchema: z.object({
        arg1: completable(z.string(), (typed) => ['paris', 'park', 'party'].filter((word) => word.startsWith(typed))),
        arg2: z.string(),
      }),
    },
    ({ arg1, arg2 }) => ({ messages: [say(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'Fixture', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) => {
      const resource = { uri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' };
      return {
        messages: [
          { role: 'user', content: { type: 'resource', resource } },
          say('Please process the embedded resource above.'),
        ],
      };
    },
  );
  server.registerPrompt('test_prompt_with_image', { description: 'Fixture' }, () => ({
    messages: [
      { role: 'user', content: { type: 'image', data: PIXEL, mimeType: 'image/png' } },
      say('Please analyze the image above.'),
    ],
  }));
}

function addResources(server: McpServer): void {
  const details = (mimeType: string): { description: string; mimeType: string } => ({
    description: 'Fixture',
    mimeType,
  });
  server.registerResource('static-text', 'test://static-text', details('text/plain'), ({ href: uri }) => ({
    contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
  }));
  server.registerResource('static-binary', 'test://static-binary', details('image/png'), ({ href: uri }) => ({
    contents: [{ uri, mimeType: 'image/png', blob: PIXEL }],
  }));
  server.registerResource('watched', 'test://watched-resource', details('text/plain'), ({ href: uri }) => ({
    contents: [{ uri, mimeType: 'text/plain', text: 'watched' }],
  }));
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    details('application/json'),
    ({ href: uri }, { id }) => ({
      contents: [
        {
          uri,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  );
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}
