/**
 * Runs the reverse proxies as configured in docs/http.md, each in front of its own hub on loopback: `npm run proxies [-- nginx]`.
 * Needs the proxy and openssl on the PATH, and permission to listen on port 443. Tests through each: an older and a newer MCP
 * client with a form, events delivered as they happen, and requests that the hub must refuse.
 */

import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import dns from 'node:dns';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readHubRecord } from '../src/config/hub-record.ts';
import { text, tool } from '../src/scripted-model/reply.ts';
import { connectClient, ERAS } from '../test/harness/connect-client.ts';
import { eventually } from '../test/harness/eventually.ts';
import { openHarness } from '../test/harness/open-harness.ts';
import { runCommandIn } from '../test/harness/run-command.ts';

const HOST = 'hub.example.org';
const root = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(path.join(root, 'docs/http.md'), 'utf8');

interface Proxy {
  readonly command: (directory: string, config: string) => [string, ...string[]];
  readonly config: (block: string, directory: string) => string;
}

const PROXIES: Readonly<Record<string, Proxy>> = {
  nginx: {
    command: (directory, config) => ['nginx', '-c', config, '-p', directory, '-e', path.join(directory, 'error.log')],
    config: (block, directory) =>
      `daemon off;\npid ${directory}/nginx.pid;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path ${directory}/body;\nproxy_temp_path ${directory}/proxy;\n${block}}\n`,
  },
  Caddy: {
    command: (_directory, config) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', config],
    // It would otherwise request a certificate from an authority.
    config: (block, directory) =>
      `{\n  admin off\n  auto_https disable_redirects\n}\n${block.replace(`${HOST} {`, `${HOST} {\n  tls ${directory}/cert.pem ${directory}/key.pem`)}`,
  },
};

const { lookup } = dns;
// The name is reserved for examples: resolve it to this machine.
dns.lookup = ((host: string, ...rest: unknown[]) =>
  (lookup as (...all: unknown[]) => unknown)(host === HOST ? '127.0.0.1' : host, ...rest)) as typeof lookup;

function blockOf(name: string): string {
  const block = new RegExp(`^${name}:\\n\\n\`\`\`\\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1];
  if (block === undefined) throw new Error(`docs/http.md has no block for ${name}`);
  return block;
}

async function tryProxy(name: string, { command, config }: Proxy): Promise<void> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'proxy-'));
  const harness = await openHarness({ hub: { args: ['--behind-proxy', `https://${HOST}`] } });
  let proxy: ChildProcess | undefined;
  try {
    const { url } = readHubRecord(path.join(harness.stateDir, 'claude-code-mcp')) ?? { url: '' };
    const [key, cert] = [path.join(directory, 'key.pem'), path.join(directory, 'cert.pem')];
    const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const names = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`];
    execFileSync('openssl', [...made, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    const block = blockOf(name)
      .replaceAll('127.0.0.1:7433', new URL(url).host)
      .replaceAll('/etc/ssl/hub.pem', cert)
      .replaceAll('/etc/ssl/hub.key', key);
    const file = path.join(directory, 'config');
    writeFileSync(file, config(block, directory));
    const [program, ...args] = command(directory, file);
    let output = '';
    proxy = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: directory } });
    proxy.on('error', (error) => (output += error.message));
    for (const stream of [proxy.stdout, proxy.stderr])
      stream?.on('data', (piece: Buffer) => (output += piece.toString()));
    await eventually(async () => (await get('/healthz')).status === 200, { what: `${name} answers` }).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}\n${output}`);
      },
    );
    const place = { project: harness.project, env: () => harness.environment() };
    const { stdout } = await runCommandIn(place, {
      args: ['token', 'create', 'p', '--role', 'caller', '--attended', '--json'],
    });
    const { token } = JSON.parse(stdout) as { token: string };
    await drive(harness, token);
    if ((await get('/api/v1/sessions')).status !== 401) throw new Error('A request without a credential was answered');
    const { body } = await get('/healthz');
    if ((await get('/healthz', { host: 'evil.example' })).body === body)
      throw new Error('A request for a foreign host was answered');
    console.error(`works  ${name}`);
  } finally {
    proxy?.kill();
    await harness.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

function get(where: string, headers: Record<string, string> = {}): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: HOST, servername: HOST, path: where, headers, rejectUnauthorized: false, agent: false };
    https
      .get(options, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (piece: string) => (body += piece));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      })
      .on('error', reject);
  });
}

async function drive({ model, project }: Awaited<ReturnType<typeof openHarness>>, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const events: number[] = [];
  const stream = https.get({ host: HOST, path: '/api/v1/events', headers, rejectUnauthorized: false }, (response) => {
    response.on('data', () => events.push(Date.now()));
  });
  stream.on('error', () => undefined);
  for (const era of ERAS) {
    const prompt = `make it for ${era}`;
    model.on(prompt).reply(tool('Bash', { command: `touch ${era}`, description: 'make' }), text('made it'));
    let asked = 0;
    let eventsBefore = 0;
    const form = async (): Promise<{ action: 'accept'; content: { decision: string } }> => {
      asked++;
      // The session's events must arrive while the call is still in progress.
      await eventually(() => events.length > eventsBefore, { what: 'events arrive without delay' });
      return { action: 'accept', content: { decision: 'Allow once' } };
    };
    eventsBefore = events.length;
    const transport = new StreamableHTTPClientTransport(new URL(`https://${HOST}/mcp`), { requestInit: { headers } });
    const client: Client = await connectClient(transport, { era, form });
    let progress = 0;
    const call = { name: 'claude_code', arguments: { prompt, cwd: project, waitMs: 45_000 } };
    const { structuredContent } = await client.callTool(call, { timeout: 50_000, onprogress: () => progress++ });
    const { status: ended } = structuredContent as { status: string };
    await client.close();
    if (ended !== 'idle' || asked !== 1 || progress === 0)
      throw new Error(`${era}: ${ended}, ${String(asked)} forms, ${String(progress)} progress notifications`);
  }
  stream.destroy();
}

const wanted = process.argv.slice(2);
if (wanted.includes('--check')) Object.keys(PROXIES).forEach(blockOf);
else {
  // The certificate is created for this run only, and no real data is sent.
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  for (const [name, proxy] of Object.entries(PROXIES))
    if (wanted.length === 0 || wanted.includes(name.toLowerCase())) await tryProxy(name, proxy);
}
