/**
 * Runs the official MCP conformance suite against the hub's HTTP endpoint, over both protocol versions, with a server that has
 * the suite's fixtures instead of the tools. `npm run conformance [-- --only 2026-07-28]`
 */

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ModernClient } from '../src/mcp/forms/call-forms.ts';
import { serveHttp } from '../src/hub/http/serve-http.ts';
import { SignInCodes } from '../src/hub/auth/sign-in.ts';
import { Tokens } from '../src/hub/auth/tokens.ts';
import { openStore } from '../src/store/open-store.ts';
import { conformanceServer } from './conformance/fixtures.ts';
import { startCredentialProxy } from './conformance/credential-proxy.ts';

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
/** The suite does not run on Node 20. */
const NODE = 'node@22.23.3';
const EXPECTED_FAILURES = fileURLToPath(new URL('../scripts/conformance/expected-failures.yaml', import.meta.url));
/** Exit code if the suite could not be installed, so that nothing was checked. */
const NOT_RUN = 3;
const REVISIONS = ['2025-11-25', '2026-07-28'];

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    /** Sends the endpoint one request instead of running the suite, which has to be downloaded. */
    check: { type: 'boolean', default: false },
  },
});
const place = fileURLToPath(new URL('conformance-suite', import.meta.url));
const packages = path.join(place, 'node_modules');
const suite = path.join(packages, '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
const node = path.join(packages, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
if (!values.check && !(existsSync(suite) && existsSync(node))) {
  mkdirSync(place, { recursive: true });
  // It runs on the Node installed next to it, not on this one.
  const anyEngine = '--engine-strict=false';
  const failFast = ['--fetch-retries=1', '--fetch-timeout=60000'];
  const args = ['install', '--no-audit', '--no-fund', anyEngine, ...failFast, '--prefix', place, SUITE, NODE];
  if ((await run('npm', args)) !== 0) {
    console.error(`The conformance suite was not run: ${SUITE} could not be installed.`);
    process.exit(NOT_RUN);
  }
}

const stateDir = mkdtempSync(path.join(os.tmpdir(), 'claude-code-mcp-conformance-'));
const store = await openStore({ url: undefined, stateDir, warn: console.error });
const { token } = await new Tokens(store).create({ name: 'conformance', role: 'caller', attended: false });
const hub = await serveHttp({
  settings: {
    listen: { host: '127.0.0.1', port: 0 },
    tlsCert: undefined,
    tlsKey: undefined,
    behindProxy: undefined,
    oauthIssuer: undefined,
    oauthAudience: undefined,
    toolset: 'compact',
  },
  store,
  codes: new SignInCodes(),
  record: () => undefined,
  log: (level, line) => {
    if (values.verbose) console.error(level, line);
  },
  mcp: {
    open: conformanceServer,
    newClient: (principal) => new ModernClient(principal),
    forget: () => undefined,
    onToolsChanged: () => () => undefined,
    watchResources: () => () => undefined,
  },
});
const proxy = await startCredentialProxy(hub.url, token);
let failures = 0;
try {
  if (values.check) await checkEndpoint(`${proxy.url}/mcp`);
  const wanted = values.check ? [] : REVISIONS.filter((one) => values.only === undefined || one === values.only);
  for (const revision of wanted) {
    const known = revision === '2026-07-28' ? ['--expected-failures', EXPECTED_FAILURES] : [];
    const args = [suite, 'server', '--url', `${proxy.url}/mcp`, '--requirements', revision, ...known];
    if ((await run(node, args)) !== 0) failures++;
  }
} finally {
  proxy.close();
  await hub.close();
  await store.close();
  rmSync(stateDir, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

async function checkEndpoint(url: string): Promise<void> {
  const clientInfo = { name: 'check', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  const answer = await response.text();
  if (!answer.includes('"protocolVersion":"2025-11-25"')) throw new Error(`The endpoint answered: ${answer}`);
}

function run(command: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'inherit', 'inherit'],
      shell: process.platform === 'win32',
    });
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}
