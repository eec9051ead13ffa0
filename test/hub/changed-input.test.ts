import path from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { STORES } from '../store/stores.ts';
import { startTestHub } from './test-hub.ts';

test.each([
  ['Write', { file_path: '/etc/passwd', content: 'x' }],
  ['NotebookEdit', { notebook_path: '../outside.ipynb', new_source: 'x' }],
  ['Grep', { pattern: 'x', path: '/etc' }],
  ['Read', { file_path: '~/.ssh/id' }],
  ['Read', { file_path: ' /etc/passwd' }],
  ['Grep', { pattern: 'x', path: '~' }],
  ['Glob', { pattern: '/etc/*' }],
  ['Glob', { pattern: '*/../../*' }],
  ['Glob', { pattern: '{/etc,src}/*' }],
])('an answer cannot lead %s out of the allowed directories by changing its input', async (tool, updatedInput) => {
  const inside = path.join(process.cwd(), 'test');
  const { engine, agent } = await startTestHub(await STORES.sqlite(), { argv: ['--allowed-dirs', inside] });
  const { id } = await engine.start({ prompt: 'go', options: { cwd: inside } });
  const asked = (await agent()).ask('r1', tool, { file_path: path.join(inside, 'x.txt'), content: 'x' });
  await eventually(() => engine.session(id).requests.length === 1, { what: 'the request is open' });
  expect(() => engine.respond(id, 'r1', { decision: 'allow', updatedInput })).toThrow(/outside|not a plain path/);
  expect(engine.session(id).requests).toHaveLength(1);
  engine.respond(id, 'r1', {
    decision: 'allow',
    updatedInput: { file_path: path.join(inside, 'y.txt'), content: 'y' },
  });
  expect(await asked).toMatchObject({ behavior: 'allow', updatedInput: { content: 'y' } });
});
