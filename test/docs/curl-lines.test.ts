/** Every curl command in the docs, run as written against a hub with the real Claude Code. */

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { readHubRecord } from '../../src/config/hub-record.ts';
import { text, tool } from '../../src/scripted-model/reply.ts';
import { builtServer } from '../harness/built-server.ts';
import { eventually } from '../harness/eventually.ts';
import { startHarness } from '../harness/harness.ts';
import type { Json } from '../harness/json.ts';

const root = path.resolve(import.meta.dirname, '../..');
const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;
const canRun = ['curl', 'jq', 'bash'].every((program) => has(program, '--version'));

/** The commands in a page's shell blocks, without comments, with continued lines joined. */
function commandsOf(page: string): string[] {
  const blocks = [...readFileSync(path.join(root, page), 'utf8').matchAll(/^```sh\n([^]*?)^```$/gm)];
  return blocks
    .flatMap(([, block = '']) => block.replaceAll('\\\n', ' ').split('\n'))
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

const isCurl = (line: string): boolean => /^(api|curl) /.test(line);

test.runIf(canRun)('every curl command in the docs works', { timeout: 120_000 }, async () => {
  const h = await startHarness({ git: true, hub: {} });
  h.model.on('Fix the failing test').reply(
    tool('Bash', { command: 'echo fixed > fixed.txt', description: 'fix' }),
    tool('Bash', { command: 'touch production', description: 'use production' }),
    tool('AskUserQuestion', {
      questions: [
        {
          question: 'Which database?',
          header: 'Database',
          multiSelect: false,
          options: [
            { label: 'SQLite', description: 'a file' },
            { label: 'Postgres', description: 'a server' },
          ],
        },
      ],
    }),
    text('It is fixed.'),
  );
  h.model.on('Now the docs').reply(text('The docs are written.'));
  const { url } = readHubRecord(path.join(h.stateDir, 'claude-code-mcp'))!;
  const setup = commandsOf('docs/api.md').filter((line) => /^(export|api\(\))/.test(line));
  expect(setup).toHaveLength(3);
  const shell = path.join(h.home, 'shell.sh');
  await writeFile(
    shell,
    [
      `claude-code-mcp() { '${process.execPath}' '${builtServer()}' "$@"; }`,
      'command -v uuidgen >/dev/null || uuidgen() { cat /proc/sys/kernel/random/uuid; }',
      // An error status fails the test; a stream is read only long enough to catch up.
      'curl() { command curl --fail-with-body --max-time "$MOST" "$@"; }',
      // The page's first block, shared by all commands.
      ...setup.map((line) =>
        line.replace(
          /^export TOKEN=.*/,
          'export TOKEN=${TOKEN:-$(claude-code-mcp token create me --role admin --json | jq -r .token)}',
        ),
      ),
    ].join('\n'),
  );
  const env: Record<string, string> = { ...h.environment(), MOST: '20' };
  const run = async (line: string): Promise<string> => {
    const written = line
      .replaceAll('ccmcp_…', env['TOKEN'] ?? '')
      .replaceAll('http://127.0.0.1:7433', url)
      .replaceAll('X-Claude-Code-Key: …', `X-Claude-Code-Key: ${env['KEY'] ?? ''}`)
      .replaceAll('/home/me/shop', h.project)
      .replace(/\s+#.*$/, '');
    const isStream = line.includes('--no-buffer');
    const options = { env: { ...env, ...(isStream && { MOST: '3' }) }, cwd: h.home };
    const ended = promisify(execFile)('bash', ['-c', `. '${shell}'; set -o pipefail; ${written}`], options);
    const { stdout } = isStream
      ? await ended.catch((error: unknown) => error as { stdout: string })
      : await ended.catch((error: unknown) => {
          throw new Error(`${written}\n${(error as { stdout: string; stderr: string }).stdout}`, { cause: error });
        });
    return stdout;
  };
  env['TOKEN'] = (await run('echo $TOKEN')).trim();
  expect(env['TOKEN']).toMatch(/^ccmcp_/);

  const ask = async (what: string): Promise<Json> =>
    (await fetch(`${url}/api/v1/${what}`, { headers: { authorization: `Bearer ${env['TOKEN'] ?? ''}` } })).json();
  const polling = { within: 60_000, every: 200 };
  const answered = new Set<string>();
  const nextRequest = (): Promise<string> =>
    eventually(
      async () => {
        const { requests } = (await ask('requests')) as { requests: { requestId: string }[] };
        return requests.map(({ requestId }) => requestId).find((id) => !answered.has(id));
      },
      { ...polling, what: 'the next request is open' },
    );
  const isIdle = async (): Promise<boolean> => (await ask(`sessions/${env['S'] ?? ''}`)).status === 'idle';
  const ran: string[] = [];
  for (const page of ['docs/api.md', 'docs/http.md'])
    for (const line of commandsOf(page).filter(isCurl)) {
      if (line.includes('/requests')) env['ID'] = await nextRequest();
      if (line.includes('$S/')) await eventually(isIdle, { ...polling, what: `the session is idle before ${line}` });
      const said = await run(line);
      ran.push(line);
      if (line.includes('/answer')) answered.add(env['ID']!);
      if (line.includes('--no-buffer')) expect(said).toMatch(/^event: (live|reset)$/m);
      if (line.includes('-X POST "$HUB/api/v1/sessions" '))
        env['S'] = (JSON.parse(said) as { session: { sessionId: string } }).session.sessionId;
      if (line.includes('/requests"')) expect(said).toContain('echo fixed > fixed.txt');
      if (line.includes('/diff')) expect(said).toContain('+fixed');
      if (line.includes('/sign-in')) env['KEY'] = (JSON.parse(said) as { key: string }).key;
      if (line.endsWith('/api/v1/me')) expect(JSON.parse(said)).toMatchObject({ principal: { role: 'admin' } });
    }
  const written = ['docs/api.md', 'docs/http.md'].flatMap((page) =>
    readFileSync(path.join(root, page), 'utf8')
      .split('\n')
      .filter((line) => /^(api|curl) /.test(line)),
  );
  expect(ran).toHaveLength(written.length);
  expect(readFileSync(path.join(h.project, 'fixed.txt'), 'utf8')).toBe('fixed\n');
});
