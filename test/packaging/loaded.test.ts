import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHome, type IsolatedHome } from '../harness/isolated-home.ts';

const server = path.resolve(import.meta.dirname, '../../dist/main.mjs');
let home: IsolatedHome;

beforeAll(async () => {
  home = await createHome();
});
afterAll(() => home.remove());

/** Every module a server loads to answer these messages. */
async function loadedFor(messages: readonly object[]): Promise<string[]> {
  const log = path.join(home.home, 'loaded.txt');
  const hooks = path.join(home.home, 'hooks.mjs');
  const register = path.join(home.home, 'register.mjs');
  await writeFile(log, '');
  await writeFile(
    hooks,
    `import { appendFileSync } from 'node:fs';
     export async function resolve(specifier, context, next) {
       const found = await next(specifier, context);
       appendFileSync(${JSON.stringify(log)}, found.url + '\\n');
       return found;
     }`,
  );
  await writeFile(
    register,
    `import { register } from 'node:module'; register(${JSON.stringify(pathToFileURL(hooks).href)});`,
  );
  const child = spawn(process.execPath, ['--import', pathToFileURL(register).href, server], {
    env: home.env(),
    cwd: home.project,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const answers = new Promise<void>((resolve) => {
    let seen = '';
    child.stdout.on('data', (piece: Buffer) => {
      seen += piece.toString();
      if (seen.includes('"id":"last"')) resolve();
    });
  });
  for (const message of messages) child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  await answers;
  child.stdin.end();
  await new Promise((resolve) => child.once('exit', resolve));
  return (await readFile(log, 'utf8')).split('\n').filter((url) => url !== '');
}

test('the embedded server loads no module of the hub, the store or the dashboard', async () => {
  const clientInfo = { name: 'test', version: '1' };
  const loaded = await loadedFor([
    { id: 'first', method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } },
    { method: 'notifications/initialized' },
    { id: 'second', method: 'tools/list' },
    { id: 'last', method: 'tools/call', params: { name: 'claude_code_session', arguments: { action: 'list' } } },
  ]);
  expect(loaded.some((url) => url.endsWith('/dist/main.mjs'))).toBe(true);
  const unexpected = loaded.filter((url) =>
    /\/node_modules\/|\/(hub|bridge|socket|store|journal|http|api|dashboard)[^/]*\.mjs$/.test(url),
  );
  expect(unexpected.filter((url) => !url.includes('claude-agent-sdk'))).toEqual([]);
});
