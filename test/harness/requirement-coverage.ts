/** Which requirements a directory's tests verify. Read from the sources, because vitest isolates each file. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { defaultToolsets, type Requirement } from './requirements.ts';

export interface Coverage {
  /** Requirements that no test verifies in a toolset they apply to, as `id [toolset]`. */
  readonly unverified: readonly string[];
  /** Verified, but not defined. */
  readonly undefined: readonly string[];
  /** Calls of `verifies` whose ids or toolsets are not literals, as file:line. */
  readonly unreadable: readonly string[];
}

export function requirementCoverage(requirements: Readonly<Record<string, Requirement>>, directory: string): Coverage {
  const verified = new Set<string>();
  const unknown = new Set<string>();
  const unreadable: string[] = [];
  for (const file of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.test.ts')) continue;
    const source = ts.createSourceFile(file, readFileSync(join(directory, file), 'utf8'), ts.ScriptTarget.Latest);
    for (const call of callsOfVerifies(source)) {
      const read = readCall(call);
      if (read === undefined) {
        unreadable.push(`${file}:${lineOf(call, source)}`);
        continue;
      }
      for (const id of read.ids) if (!Object.hasOwn(requirements, id)) unknown.add(id);
      const known = read.ids.filter((id) => Object.hasOwn(requirements, id));
      for (const toolset of read.toolsets ?? defaultToolsets(requirements, known)) {
        for (const id of known) verified.add(`${id} [${toolset}]`);
      }
    }
  }
  const unverified = Object.entries(requirements).flatMap(([id, { toolsets, isEngine = false }]) => {
    const missing = toolsets.map((one) => `${id} [${one}]`).filter((one) => !verified.has(one));
    return isEngine && missing.length < toolsets.length ? [] : missing;
  });
  return { unverified, undefined: [...unknown], unreadable };
}

interface ReadCall {
  readonly ids: readonly string[];
  /** `undefined` if they follow from the ids. */
  readonly toolsets: readonly string[] | undefined;
}

function callsOfVerifies(source: ts.SourceFile): ts.CallExpression[] {
  const calls: ts.CallExpression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'verifies') {
      calls.push(node);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return calls;
}

/** `undefined` if its ids or toolsets are not literals. */
function readCall({ arguments: given }: ts.CallExpression): ReadCall | undefined {
  const ids = literals(given[0]);
  if (ids === undefined) return undefined;
  if (given.length < 3) return { ids, toolsets: undefined };
  const variants = given[1];
  if (variants === undefined || !ts.isObjectLiteralExpression(variants)) return undefined;
  const properties = variants.properties.filter(ts.isPropertyAssignment);
  if (properties.length < variants.properties.length) return undefined;
  const named = properties.find(({ name }) => ts.isIdentifier(name) && name.text === 'toolsets');
  if (named === undefined) return { ids, toolsets: undefined };
  const toolsets = literals(named.initializer);
  return toolsets && { ids, toolsets };
}

function literals(argument: ts.Expression | undefined): string[] | undefined {
  if (argument === undefined) return undefined;
  const elements: readonly ts.Expression[] = ts.isArrayLiteralExpression(argument) ? argument.elements : [argument];
  return elements.every((element) => ts.isStringLiteral(element)) ? elements.map(({ text }) => text) : undefined;
}

function lineOf(node: ts.Node, source: ts.SourceFile): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}
