import { expect, test } from 'vitest';
import { z } from 'zod';
import { ask, put, request, session } from '../store/rows.ts';
import { ADMIN, openApi, assistantMessage, type ApiWorld } from './api-world.ts';

interface Document {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

interface Operation {
  operationId: string;
  parameters?: { name: string; in: string; schema: object }[];
  requestBody?: { required: boolean; content: Record<string, { schema: object }> };
  responses: Record<string, { content?: Record<string, { schema: object }> }>;
}

/** A client driven only by the OpenAPI document: it calls operations by name and validates requests and responses. */
async function clientOf(world: ApiWorld) {
  const { json } = await world.call(ADMIN, 'GET', '/api/v1/openapi.json');
  const document: Document = json;
  const operations = new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [operation.operationId, { path, method, operation }]),
    ),
  );
  // The library only resolves references into $defs.
  const inDefs = (schema: object): string => JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/');
  const $defs = JSON.parse(inDefs(document.components.schemas)) as object;
  const validator = (schema: object): z.ZodType =>
    z.fromJSONSchema({ ...(JSON.parse(inDefs(schema)) as object), $defs } as never);
  const call = async (name: string, params: Record<string, string> = {}, body?: object): Promise<unknown> => {
    const found = operations.get(name);
    if (!found) throw new Error(`no operation ${name}`);
    const { path, method, operation } = found;
    const sent = operation.requestBody?.content['application/json'];
    if (sent && body) validator(sent.schema).parse(body);
    const query = new URLSearchParams();
    for (const parameter of operation.parameters ?? []) {
      const value = params[parameter.name];
      if (parameter.in === 'query' && value !== undefined) query.set(parameter.name, value);
    }
    const filled = path.replace(/\{(\w+)\}/g, (_, id: string) => encodeURIComponent(params[id] ?? ''));
    const answer = await world.call(ADMIN, method.toUpperCase(), `${filled}?${query.toString()}`, { body });
    const described = operation.responses[String(answer.status)]?.content?.['application/json'];
    if (!described) throw new Error(`${name} returned ${answer.status}, which the document does not list`);
    return validator(described.schema).parse(answer.json);
  };
  return { document, operations, call };
}

const RULE = { decision: 'allow', tool: 'Bash', match: 'npm test', directory: '/work' };

test('a client driven only by the document can call every operation except sign-in and the event stream', async () => {
  const world = await openApi();
  await world.write(
    put(session('s1', world.hub, { title: 'one', state: { tag: 'waiting' } })),
    assistantMessage('s1', 1),
    ask(request('s1', 'r1', { ask: { toolName: 'Bash', input: { command: 'ls' }, toolUseId: 't1' } })),
  );
  Object.assign(world.engine, {
    start: () => ({ sessionId: 's1', warnings: [] }),
    reply: () => ({ sessionId: 's1', warnings: [] }),
    respond: () => ({ sessionId: 's1', warnings: [] }),
    interrupt: () => true,
    rename: () => true,
    archive: () => true,
    withdraw: () => true,
    browse: () => ['/work/shop'],
    offeredModels: () => [],
    cancel: () => true,
    diff: () => ({ filesChanged: 0, insertions: 0, deletions: 0, files: [], diff: '', totalBytes: 0 }),
    rewind: () => ({ dryRun: true, files: [], left: [] }),
    apply: () => ({ outcome: 'nothing-to-apply' }),
    discard: () => ({ path: '/w', keptBranches: [] }),
  });
  const { call, operations } = await clientOf(world);
  const id = 's1';
  const prompt = 'go on';
  const made = (await call('createToken', {}, { name: 'ci', role: 'viewer' })) as { id: string };
  let rule = '';
  const calls: Record<string, () => Promise<unknown>> = {
    listSessions: () => call('listSessions', { limit: '10', status: 'waiting_permission' }),
    getSession: () => call('getSession', { id }),
    listEvents: () => call('listEvents', { id, after: '0' }),
    getDiff: () => call('getDiff', { id }),
    startSession: () => call('startSession', {}, { prompt, cwd: '/work' }),
    sendMessage: () => call('sendMessage', { id }, { prompt }),
    forkSession: () => call('forkSession', { id }, { prompt }),
    interruptSession: () => call('interruptSession', { id }, {}),
    cancelSession: () => call('cancelSession', { id }, {}),
    rewindSession: () => call('rewindSession', { id }, { toUserMessage: 'u1' }),
    applyWork: () => call('applyWork', { id }, {}),
    discardWork: () => call('discardWork', { id }, {}),
    listRequests: () => call('listRequests'),
    getRequest: () => call('getRequest', { requestId: 'r1' }),
    answerRequest: () => call('answerRequest', { requestId: 'r1' }, { decision: 'allow' }),
    getPush: () => call('getPush'),
    getMe: () => call('getMe'),
    getCosts: () => call('getCosts'),
    listDirectories: () => call('listDirectories', { path: '/work' }),
    createSignInCode: () => call('createSignInCode', {}, {}),
    listModels: () => call('listModels'),
    listImages: () => call('listImages', { id, event: '1' }),
    renameSession: () => call('renameSession', { id }, { title: 'new' }),
    archiveSession: () => call('archiveSession', { id }, { archived: true }),
    changeMessage: () => call('changeMessage', { id, message: 'm1' }, { prompt: 'other words' }),
    withdrawMessage: () => call('withdrawMessage', { id, message: 'm1' }),
    listAudit: () => call('listAudit'),
    listTokens: () => call('listTokens'),
    createToken: () => Promise.resolve(),
    revokeToken: () => call('revokeToken', { id: made.id }),
    createRule: async () => {
      rule = ((await call('createRule', {}, RULE)) as { rule: { id: string } }).rule.id;
    },
    createRules: () => call('createRules', {}, { rules: [RULE, RULE] }),
    listRules: () => call('listRules'),
    listRulePacks: () => call('listRulePacks'),
    replayRule: () => call('replayRule', {}, RULE),
    changeRule: () => call('changeRule', { id: rule }, { enabled: false }),
    removeRule: () => call('removeRule', { id: rule }),
    getOpenApi: () => call('getOpenApi'),
  };
  for (const operation of Object.values(calls)) await operation();
  // Only a credential that is stored can subscribe: see push-api.test.ts.
  const testedElsewhere = ['streamEvents', 'signIn', 'subscribeToPush', 'unsubscribeFromPush', 'testPush'];
  expect([...operations.keys()].sort()).toEqual([...Object.keys(calls), ...testedElsewhere].sort());
});

test('every operation has a unique name and documents the errors that any may return', async () => {
  const { document } = await clientOf(await openApi());
  expect(document.openapi).toBe('3.1.0');
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  for (const { responses, requestBody } of operations)
    expect(Object.keys(responses)).toEqual(
      expect.arrayContaining(['401', '404', '500', ...(requestBody ? ['413', '415'] : [])]),
    );
});
