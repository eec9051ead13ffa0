import { spawn } from 'node:child_process';
import { askHub } from '../../transports/attach/connect-hub.ts';
import type { HubCommandContext } from './run-hub.ts';
import { requireHub } from './running-hub.ts';

/** Opens the dashboard, signed in, or prints the link to it. A code is good for one sign-in within two minutes. */
export async function openDashboard(
  { settings, platform }: HubCommandContext,
  options: readonly string[],
): Promise<number> {
  const record = await requireHub(settings.stateDir);
  if (!record) return 1;
  const { code } = await askHub<{ code: string }>(record, settings.stateDir, 'sign-in');
  // In the fragment, which no server and no log of one ever sees.
  const link = `${record.url}/#code=${code}`;
  if (options.includes('--print')) {
    process.stdout.write(`${link}\n`);
    return 0;
  }
  const opened = await openInBrowser(link, platform);
  process.stdout.write(
    opened ? `Opened ${record.url} in the browser.\n` : `Open this link within two minutes; it works once:\n${link}\n`,
  );
  return 0;
}

function openInBrowser(link: string, platform: NodeJS.Platform): Promise<boolean> {
  const [program, ...args] = openerOf(platform);
  if (program === undefined) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn(program, [...args, link], { stdio: 'ignore', detached: true, windowsHide: true });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
    // One that stays in the foreground has opened it.
    setTimeout(() => resolve(true), 2_000).unref();
    child.unref();
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
