/** What a client and the server exchanged about forms, as recorded by `clients/wire.mjs`. */

import { existsSync, readFileSync } from 'node:fs';
import type { AuditEntry } from '../../src/audit/audit-log.ts';

export interface FormRecord {
  /** The client declares that it can show forms. */
  declared: boolean;
  /** The action returned for a permission form and a question form; undefined if there was no form. */
  approval: string | undefined;
  question: string | undefined;
}

type Note =
  | { kind: 'client'; declares: boolean }
  | { kind: 'form'; form: { requestedSchema?: { properties?: object } }; action: string };

export function readFormRecord(log: string): FormRecord {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  const record: FormRecord = { declared: false, approval: undefined, question: undefined };
  for (const note of lines.filter(Boolean).map((line) => JSON.parse(line) as Note)) {
    if (note.kind === 'client') record.declared ||= note.declares;
    else if ('decision' in (note.form.requestedSchema?.properties ?? {})) record.approval ??= note.action;
    else record.question ??= note.action;
  }
  return record;
}

export interface Deciders {
  approval: string;
  question: string;
}

/** Who settled the requests of the task, according to the server's audit log: the first of two answers counts. */
export function readDeciders(auditLog: string): Deciders {
  const deciders: Deciders = { approval: 'none', question: 'none' };
  const lines = existsSync(auditLog) ? readFileSync(auditLog, 'utf8').trim().split('\n') : [];
  for (const line of lines.filter(Boolean)) {
    const { kind, who, what, outcome } = JSON.parse(line) as AuditEntry;
    if (kind !== 'decision') continue;
    const decided = what.includes('AskUserQuestion') ? 'question' : 'approval';
    if (deciders[decided] === 'none') deciders[decided] = `${MEANS[who] ?? who}${outcome === 'deny' ? ', denied' : ''}`;
  }
  return deciders;
}

const MEANS: Partial<Record<AuditEntry['who'], string>> = { human: 'form', caller: 'tool' };

/** For the table: what the client does with forms. */
export function describeForms({ declared, approval, question }: FormRecord): string {
  if (!declared) return 'none';
  const answers = [...new Set([approval, question].filter((action) => action !== undefined))];
  return answers.length === 0 ? 'declared, none asked for' : answers.map(actionInWords).join(', ');
}

function actionInWords(action: string): string {
  switch (action) {
    case 'accept':
      return 'shown and answered';
    case 'decline':
      return 'declined, nobody asked';
    case 'cancel':
      return 'cancelled, nobody asked';
    default:
      return 'failed';
  }
}
