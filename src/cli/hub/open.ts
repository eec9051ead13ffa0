import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { writeSignInPage } from '../../hub/auth/sign-in.ts';
import { askHub } from '../../transports/attach/connect-hub.ts';
import type { HubCommandContext } from './run-hub.ts';
import { requireHub } from './running-hub.ts';

/** Opens the dashboard, signed in, or prints the link to it. A code is valid for one sign-in within two minutes. */
export async function openDashboard(
  { settings, platform }: HubCommandContext,
  options: readonly string[],
): Promise<number> {
  const record = await requireHub(settings.stateDir);
  if (!record) return 1;
  const { code } = await askHub<{ code: string }>(record, settings.stateDir, 'sign-in');
  // In the fragment, which no server or its log ever sees.
  const link = `${record.url}/#code=${code}`;
  if (options.includes('--print')) {
    process.stdout.write(`${link}\n`);
    return 0;
  }
  const page = await writeSignInPage(settings.stateDir, link, code);
  if (await openInBrowser(page, platform)) {
    // The hub removes the page when its code is used or expires. A containerised browser may not be able to read it.
    process.stdout.write(`Opened ${record.url} in the browser. If it did not come up: hub open --print\n`);
  } else {
    await rm(page, { force: true });
    process.stdout.write(`Open this link within two minutes; it works once:\n${link}\n`);
  }
  return 0;
}

function openInBrowser(page: string, platform: NodeJS.Platform): Promise<boolean> {
  const [program, ...args] = openerOf(platform);
  if (program === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn(program, [...args, page], { stdio: 'ignore', detached: true, windowsHide: true });
    const done = (opened: boolean): void => {
      clearTimeout(timer);
      child.unref();
      resolve(opened);
    };
    // One that stays in the foreground has opened it.
    const timer = setTimeout(() => done(true), 2_000);
    child.once('error', () => done(false));
    child.once('exit', (code) => done(code === 0));
  });
}

function openerOf(platform: NodeJS.Platform): string[] {
  switch (platform) {
    case 'darwin':
      return ['open'];
    case 'win32':
      return ['rundll32', 'url.dll,FileProtocolHandler'];
    default:
      return ['xdg-open'];
  }
}
