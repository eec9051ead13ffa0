import type { CallToolResult, InputRequiredResult, CallToolRequest, ServerContext } from '@modelcontextprotocol/server';
import { digestLine } from '../audit/audit-log.ts';
import type { EngineClient } from '../engine/client.ts';
import type { Principal } from '../engine/rules/access.ts';
import { IDEMPOTENCY_META_KEY } from '../schema/enums.ts';
import { DomainError, formatError, shortageOf } from '../errors/errors.ts';
import { compactStatus, explicitStatus } from '../views/status.ts';
import { isObject } from '../schema/json.ts';
import { checkShape, parseArguments, type Arguments } from './arguments.ts';
import type { CallPart, Tool, ToolContext } from './define-tool.ts';

/**
 * Runs a tool. Nothing is thrown to the protocol: failures are results. A call that waits may end with forms instead,
 * and is then repeated with the answers.
 */
export async function callTool(
  tool: Tool,
  given: unknown,
  context: ToolContext,
): Promise<CallToolResult | InputRequiredResult> {
  const args = isObject(given) ? given : {};
  try {
    if (given !== undefined && !isObject(given))
      throw new DomainError('INVALID_ARGUMENT', 'Arguments must be an object.');
    checkShape(args);
    const input = parseArguments(tool.input(), tool.normalize(args), tool.flatNames);
    await context.forms?.takeAnswers(tool.name);
    const answer = await tool.run(input as never, context);
    const asked = await context.forms?.result(tool.name);
    // Nothing is reported that a crash could undo.
    await context.engine.stored();
    auditCall(context.engine, tool, args, answer, asked ? 'asks the user' : 'ok');
    return asked ?? toResult(answer);
  } catch (thrown) {
    const error = shortageOf(thrown) ?? thrown;
    context.forms?.withdraw();
    const failure = withStatus(tool.failure(formatError(error), args), context.engine, args);
    auditCall(context.engine, tool, args, failure, error instanceof DomainError ? error.code : 'INTERNAL');
    return { ...toResult(failure), isError: true };
  }
}

/**
 * So that a polling loop sees the end, whatever is wrong with its calls. A failure that has a status of its own keeps
 * it: a client that looks at nothing else would take an old answer for one to the message that was refused.
 */
function withStatus(failure: object, engine: EngineClient, { sessionId }: Arguments): object {
  const record = typeof sessionId === 'string' ? engine.peek(sessionId) : undefined;
  if (!record) return failure;
  const status = STATUS[engine.toolset](record);
  return 'status' in failure ? { ...failure, sessionStatus: status } : { ...failure, status };
}

const STATUS = { compact: compactStatus, explicit: explicitStatus };

/** The same object twice: some clients show only the text, some only the structure. */
export function toResult(answer: object): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(answer) }],
    structuredContent: { ...answer },
  };
}

function auditCall(engine: EngineClient, tool: Tool, args: Arguments, answer: object, outcome: string): void {
  const { sessionId = args['sessionId'] } = answer as { sessionId?: unknown };
  const action = typeof args['action'] === 'string' ? ` ${args['action'].slice(0, 40)}` : '';
  engine.record({
    kind: 'tool_call',
    what: `${tool.name}${action}`,
    outcome,
    ...(typeof sessionId === 'string' && sessionId !== '' && { session: sessionId.slice(0, 200) }),
    details: { arguments: argumentsLine(args) },
  });
}

/** Input nested too deeply to be serialised still leaves a record, in another form. */
function argumentsLine(args: Arguments): string {
  try {
    return digestLine(JSON.stringify(args));
  } catch {
    return 'nested too deeply';
  }
}

export type ToolAnswer = CallToolResult | InputRequiredResult;

/** Runs a call once per key. */
export type CallOnce = (
  call: {
    readonly principal: string;
    readonly key: string;
    readonly tool: string;
    readonly args: unknown;
    /** Aborted when the client is gone or has lost interest. */
    readonly signal: AbortSignal;
  },
  run: (part: CallPart) => Promise<ToolAnswer>,
) => Promise<ToolAnswer>;

/** With the call's key, if it has one. Problems with the key are reported the way tools report them. */
export async function calledOnce(
  once: CallOnce,
  { params }: CallToolRequest,
  ctx: ServerContext,
  { id: principal }: Principal,
  run: (part?: CallPart) => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  const key = params._meta?.[IDEMPOTENCY_META_KEY];
  // A call repeated with the answers to its forms continues where it was, and is not a repeat.
  if (key === undefined || ctx.mcpReq.requestState() !== undefined) return run();
  try {
    if (typeof key !== 'string')
      throw new DomainError('INVALID_ARGUMENT', `_meta["${IDEMPOTENCY_META_KEY}"] must be a string.`);
    const { signal } = ctx.mcpReq;
    return await once({ principal, key, tool: params.name, args: params.arguments, signal }, run);
  } catch (error) {
    const failure = formatError(error);
    return { ...toResult({ isError: true, error: failure }), isError: true };
  }
}
