/** One tool call, and what every answer must look like. */

import type { CallToolResult, Client, Progress } from '@modelcontextprotocol/client';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { ErrorCode } from '../../src/errors/errors.ts';
import type { Json } from './json.ts';

export interface CallOptions {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds. By default shorter than a test's timeout, so that the failure names the call. */
  readonly timeout?: number;
}

export interface CallResult {
  readonly isError: boolean;
  readonly data: Json;
  readonly text: string;
  readonly raw: CallToolResult;
}

const CALL_TIMEOUT_MS = 100_000;
const ERROR_TEXT = /^Error \[([A-Z_]+)\]: (.+)$/s;

export async function callTool(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>>,
  { onProgress, signal, timeout = CALL_TIMEOUT_MS }: CallOptions = {},
): Promise<CallResult> {
  const raw = await client.callTool(
    { name, arguments: { ...args } },
    { timeout, ...(signal && { signal }), ...(onProgress && { onprogress: onProgress }) },
  );
  return readAnswer(name, raw);
}

export function readAnswer(tool: string, raw: CallToolResult): CallResult {
  const isError = raw.isError === true;
  const [first] = raw.content;
  if (first?.type !== 'text') throw new Error(`${tool} answered without a text: ${show(raw)}`);
  const data = parse(tool, first.text);
  const { structuredContent } = raw;
  if (structuredContent === undefined && !isError) {
    throw new Error(`${tool} answered without structuredContent: ${show(raw)}`);
  }
  if (structuredContent !== undefined && !isDeepStrictEqual(data, structuredContent)) {
    throw new Error(
      `${tool} answered two different things.\ntext: ${first.text}\nstructuredContent: ${show(structuredContent)}`,
    );
  }
  return { isError, data, text: first.text, raw };
}

export function expectOk(tool: string, { isError, data, text }: CallResult): Json {
  if (isError) throw new Error(`${tool} failed: ${text}`);
  return data;
}

/** Returns the message without the code. */
export function expectError(tool: string, { isError, data, text }: CallResult, code: ErrorCode): string {
  if (!isError) throw new Error(`${tool} should have failed with ${code}, but answered: ${text}`);
  const [, actualCode, message] = ERROR_TEXT.exec(String(data.error)) ?? [];
  if (actualCode !== code || message === undefined) {
    throw new Error(`${tool} should have failed with "Error [${code}]: …", but said: ${text}`);
  }
  return message;
}

function parse(tool: string, text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${tool} answered with a text that is not JSON: ${text}`);
  }
}

function show(value: unknown): string {
  return inspect(value, { depth: 8, breakLength: 120 });
}
