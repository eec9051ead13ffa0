import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const source = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Finding {
  id: string;
  impact: string | null;
  nodes: { target: unknown; failureSummary?: string }[];
}

/** What axe-core finds that keeps somebody from using the page. Evaluated by the debugger, which no content policy binds. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(await source);
  const findings = await page.evaluate<Finding[]>(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)`,
  );
  return findings
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} ${String(target)}: ${failureSummary ?? ''}`),
    );
}

export async function overflows(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');
}
