/** Which requirements the tests of a directory verify. Read from their sources, because vitest runs each file apart. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

export interface Coverage {
  /** Defined, but no test verifies it. */
  readonly unverified: readonly string[];
  /** Verified, but not defined. */
  readonly undefined: readonly string[];
  /** Calls of `verifies` whose ids are not written out, as file:line. */
  readonly unreadable: readonly string[];
}

export function requirementCoverage(requirements: Readonly<Record<string, string>>, directory: string): Coverage {
  const verified = new Set<string>();
  const unreadable: string[] = [];
  for (const file of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.test.ts')) continue;
    const source = ts.createSourceFile(file, readFileSync(join(directory, file), 'utf8'), ts.ScriptTarget.Latest);
    for (const call of callsOfVerifies(source)) {
      const ids = literalIds(call.arguments[0]);
      if (ids === undefined) unreadable.push(`${file}:${lineOf(call, source)}`);
      else for (const id of ids) verified.add(id);
    }
  }
  return {
    unverified: Object.keys(requirements).filter((id) => !verified.has(id)),
    undefined: [...verified].filter((id) => !Object.hasOwn(requirements, id)),
    unreadable,
  };
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

function literalIds(argument: ts.Expression | undefined): string[] | undefined {
  if (argument === undefined) return undefined;
  const elements: readonly ts.Expression[] = ts.isArrayLiteralExpression(argument) ? argument.elements : [argument];
  return elements.every((element) => ts.isStringLiteral(element)) ? elements.map(({ text }) => text) : undefined;
}

function lineOf(node: ts.Node, source: ts.SourceFile): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}
