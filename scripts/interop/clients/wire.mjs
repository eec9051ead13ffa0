// Sits between a client and the server and records what they say about forms: `node wire.mjs <log> <command> [arguments]`.
// Only the wire shows what a client shows its user: most do not report it, and no two in the same way.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [log, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const forms = new Map();

const note = (what) => appendFileSync(log, `${JSON.stringify(what)}\n`);
const capabilitiesOf = ({ method, params }) =>
  method === 'initialize' ? params.capabilities : params?._meta?.['io.modelcontextprotocol/clientCapabilities'];

function fromClient(message) {
  const capabilities = capabilitiesOf(message);
  if (capabilities !== undefined) note({ kind: 'client', declares: capabilities.elicitation !== undefined });
  for (const [id, answer] of Object.entries(message.params?.inputResponses ?? {})) noteAnswer(id, answer);
  if (message.method === undefined && forms.has(message.id)) noteAnswer(message.id, message.result);
}

function fromServer({ method, id, params, result }) {
  if (method === 'elicitation/create') forms.set(id, params);
  for (const [key, { params: form }] of Object.entries(result?.inputRequests ?? {})) forms.set(key, form);
}

function noteAnswer(id, answer) {
  const form = forms.get(id);
  if (form !== undefined) note({ kind: 'form', form, action: answer?.action ?? 'failed' });
}

function pass(from, to, look) {
  createInterface({ input: from })
    .on('line', (line) => {
      to.write(`${line}\n`);
      look(JSON.parse(line));
    })
    .on('close', () => to.end());
}
pass(process.stdin, server.stdin, fromClient);
pass(server.stdout, process.stdout, fromServer);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => server.kill(signal));
server.on('exit', (code) => process.exit(code ?? 1));
