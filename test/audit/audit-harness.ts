import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import {
  type AuditEntry,
  type NewAuditEntry,
  openAudit,
  type Audit,
  type AuditOptions,
} from '../../src/audit/audit-log.ts';

/** A temporary directory for the running test. */
export function temporaryDirectory(): string {
  const directory = realpathSync(mkdtempSync(path.join(tmpdir(), 'audit-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function entriesIn(file: string): AuditEntry[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as AuditEntry);
}

export const AT = '2026-01-02T03:04:05.000Z';

/** A log with a fixed clock whose warnings are collected. */
export function open(file: string, options: Partial<AuditOptions> = {}): { audit: Audit; warnings: string[] } {
  const warnings: string[] = [];
  const audit = openAudit({ path: file, warn: (line) => warnings.push(line), now: () => new Date(AT), ...options });
  return { audit, warnings };
}

export function entry(what: string): NewAuditEntry {
  return { kind: 'tool_call', who: 'caller', what };
}
