/** A script over HTTP: the built hub, the real Claude Code, a token from the command line, and a webhook receiver. */

import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import parsePrometheus from 'parse-prometheus-text-format';
import { expect, onTestFinished, test } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { note, type Note } from '../../src/hub/notify/notify-target.ts';
import { apiSessionDetail, requestsPage, type TurnAnswer } from '../../src/schema/api.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { startHarness } from '../harness/harness.ts';
import { runCommandIn } from '../harness/run-command.ts';

async function receiver(): Promise<{ url: string; deliveries: { body: string; signature: unknown; note: Note }[] }> {
  const deliveries: { body: string; signature: unknown; note: Note }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      deliveries.push({ body, signature: request.headers['x-hub-signature-256'], note: note.parse(JSON.parse(body)) });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, deliveries };
}

test('a script starts a session, answers its request and is notified', { timeout: 60_000 }, async () => {
  const { url: target, deliveries } = await receiver();
  const secret = 'a secret of at least sixteen characters';
  const h = await startHarness({
    hub: { args: ['--notify', target], env: { CLAUDE_CODE_MCP_NOTIFY_SECRET: secret } },
  });
  h.model.on('make it').reply(tool('Bash', { command: 'touch made.txt', description: 'make a file' }), text('made it'));
  const { url } = readHubRecord(join(h.stateDir, 'claude-code-mcp')) ?? { url: '' };
  const tokenOf = async (role: string): Promise<string> => {
    const place = { project: h.project, env: () => h.environment() };
    const { stdout } = await runCommandIn(place, { args: ['token', 'create', role, '--role', role, '--json'] });
    return (JSON.parse(stdout) as { token: string }).token;
  };
  const [caller, approver] = [await tokenOf('caller'), await tokenOf('approver')];
  const call = async (token: string, method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });

  expect((await fetch(`${url}/metrics`)).status).toBe(401);
  const stream = await call(approver, 'GET', '/api/v1/events');
  expect(stream.headers.get('content-type')).toContain('text/event-stream');
  let received = '';
  const reading = (async () => {
    for await (const piece of stream.body as unknown as AsyncIterable<Uint8Array>)
      received += Buffer.from(piece).toString();
  })().catch(() => undefined);
  await expect.poll(() => received).toContain('event: live');

  const started = await call(caller, 'POST', '/api/v1/sessions', { prompt: 'make it', cwd: h.project });
  expect(started.status).toBe(201);
  const { sessionId } = ((await started.json()) as TurnAnswer).session;
  const inbox = async () => requestsPage.parse(await (await call(approver, 'GET', '/api/v1/requests')).json()).requests;
  await expect.poll(inbox, { timeout: 20_000 }).toMatchObject([{ sessionId, input: { command: 'touch made.txt' } }]);
  const [asked] = await inbox();
  await expect.poll(() => deliveries.length).toBe(1);
  expect(deliveries[0]?.note).toMatchObject({
    type: 'request.opened',
    session: { id: sessionId },
    request: { toolName: 'Bash' },
  });
  expect(deliveries[0]?.body).not.toContain('touch');

  const answer = (token: string) =>
    call(token, 'POST', `/api/v1/requests/${asked?.requestId ?? ''}/answer`, { decision: 'allow' });
  expect((await answer(approver)).status).toBe(200);
  const late = await answer(caller);
  expect(late.status).toBe(409);
  expect(await late.json()).toMatchObject({ outcome: { decision: 'allow', by: 'approver', source: 'human' } });

  const detail = async () =>
    apiSessionDetail.parse(await (await call(caller, 'GET', `/api/v1/sessions/${sessionId}`)).json());
  await expect.poll(detail, { timeout: 20_000 }).toMatchObject({ status: 'idle', result: { result: 'made it' } });
  await expect.poll(() => deliveries.map(({ note: { type } }) => type)).toEqual(['request.opened', 'session.rested']);
  for (const { body, signature } of deliveries)
    expect(signature).toBe(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  await expect.poll(() => received).toContain('"status":"idle"');

  const metrics = parsePrometheus(await (await call(approver, 'GET', '/metrics')).text());
  const value = (name: string) => metrics.find((family) => family.name === name)?.metrics[0]?.value;
  expect(Number(value('claude_code_turns_total'))).toBeGreaterThan(0);
  expect(value('claude_code_requests_settled_total')).toBe('1');
  expect(metrics.map(({ name }) => name)).toContain('mcp_server_operation_duration_seconds');
  await stream.body?.cancel().catch(() => undefined);
  await h.stopHub();
  await reading;
});
