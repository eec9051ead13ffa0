/** The jobs of a caller with other servers that can do one at all, with the same Claude Code and the same model. */

import { symlink, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { startScriptedModel } from '../../src/scripted-model/scripted-model.ts';
import { createHome } from '../../test/harness/isolated-home.ts';
import { jobsIn, leftIn, prepareProject, type Job } from './caller-jobs.ts';
import { bundledClaude, type PeerCommand } from './peers.ts';
import type { CallerServer, JobCost } from './row.ts';

/** Runs the jobs with each of them. One that cannot do the first job is reported and left out. */
export async function peerJobs(peers: readonly PeerCommand[]): Promise<CallerServer[]> {
  const measured: CallerServer[] = [];
  for (const peer of peers) {
    const { job } = peer;
    if (!job) continue;
    try {
      measured.push(await jobsOf(peer, job));
    } catch (error) {
      console.error(`not measured: ${peer.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return measured;
}

const JOB_TIMEOUT_MS = 60_000;

async function jobsOf(peer: PeerCommand, call: NonNullable<PeerCommand['job']>): Promise<CallerServer> {
  const place = await createHome();
  const model = await startScriptedModel();
  const bin = path.join(path.dirname(place.home), 'bin');
  try {
    await prepareProject(place.project);
    await mkdir(bin);
    await symlink(bundledClaude(), path.join(bin, 'claude'));
    const env = {
      ...place.env(),
      ...model.env(),
      PATH: `${bin}${path.delimiter}${process.env['PATH'] ?? ''}`,
      WORKSPACE: place.project,
    };
    const fetch = `curl --silent --output download ${model.url}/download`;
    const jobs: JobCost[] = [];
    for (const job of jobsIn(place.project, fetch)) {
      model.on(`job: ${job.what}`).reply(...job.replies);
      jobs.push(await runJob(peer, { cwd: place.project, env }, job, call(`job: ${job.what}`, place.project)));
    }
    if (!jobs[0]?.isDone) throw new Error('it did not return the answer');
    return { name: peer.name, jobs, decisions: 0, ...leftIn(place.project) };
  } finally {
    await model.close();
    await place.remove();
  }
}

/** A server for each job: some of them keep their last session. */
async function runJob(
  { file, args }: PeerCommand,
  place: { readonly cwd: string; readonly env: Record<string, string> },
  { what, claim }: Job,
  call: { readonly name: string; readonly arguments: Record<string, unknown> },
): Promise<JobCost> {
  const client = new Client({ name: 'bench', version: '1.0.0' }, { versionNegotiation: { mode: 'legacy' } });
  await client.connect(new StdioClientTransport({ command: file, args: [...args], ...place, stderr: 'ignore' }));
  try {
    const answer = await client.callTool(call, { timeout: JOB_TIMEOUT_MS });
    const read = JSON.stringify(answer.structuredContent ?? answer.content);
    return { job: what, calls: 1, bytes: Buffer.byteLength(read), isDone: read.includes(claim) };
  } catch {
    return { job: what, calls: 1, bytes: 0, isDone: false };
  } finally {
    await client.close();
  }
}
