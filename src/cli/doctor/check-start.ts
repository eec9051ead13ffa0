import { messageOf } from '../../errors/errors.ts';
import { text } from '../../scripted-model/reply.ts';
import { startScriptedModel } from '../../scripted-model/scripted-model.ts';
import { openRehearsal, createWorld, type RehearsalSettings } from '../rehearsal/world.ts';
import { ok, problem, type Finding } from './check-setup.ts';

const CHECK = 'Trial run';
const PROMPT = 'Say that you are ready.';
const READY = 'I am ready.';
const ANSWER_WITHIN_MS = 50_000;

export interface StartContext {
  readonly program: string;
  readonly version: string;
  readonly settings: RehearsalSettings;
  readonly env: NodeJS.ProcessEnv;
  readonly temporaryDir: string;
}

/** A whole turn through client, server and Claude Code; only the model is a stand-in, so no login is needed. */
export async function checkStart(context: StartContext): Promise<Finding> {
  const started = performance.now();
  try {
    const said = await oneTurn(context);
    if (said !== READY) throw new Error(`the session ended with ${JSON.stringify(said)}`);
    return ok(
      CHECK,
      `Claude Code answered through the server in ${seconds(performance.now() - started)}, with a scripted model: no login or network was used`,
    );
  } catch (error) {
    return problem(
      CHECK,
      messageOf(error),
      'Fix the problems above; if there are none, run claude-code-mcp --log-level debug and report the output.',
    );
  }
}

async function oneTurn({ program, version, settings, env, temporaryDir }: StartContext): Promise<string> {
  const world = await createWorld(env, temporaryDir);
  const model = await startScriptedModel();
  model.on(PROMPT).reply(text(READY));
  try {
    const { stateDir, root: cwd, toolEnv } = world;
    const client = await openRehearsal({
      program,
      version,
      settings,
      stateDir,
      cwd,
      env: { ...toolEnv, ...model.env() },
    });
    let sessionId: string | undefined;
    try {
      // People run the doctor on machines that are slow.
      const advanced = { sessionInitTimeoutMs: ANSWER_WITHIN_MS };
      const state = await client.call('claude_code', { prompt: PROMPT, cwd, waitMs: ANSWER_WITHIN_MS, advanced });
      ({ sessionId } = state);
      return state.result?.result ?? state.status;
    } finally {
      await client.close(sessionId);
    }
  } finally {
    await model.close();
    await world.remove();
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
