/** Amounts, times and names as people read them. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function relativeTime(at: number, now: number): string {
  const past = now - at;
  const distance = Math.abs(past);
  if (distance < 45_000) return past >= -5000 ? 'just now' : 'in a moment';
  const amount =
    distance < HOUR
      ? `${Math.max(1, Math.round(distance / MINUTE))} min`
      : distance < DAY
        ? `${Math.round(distance / HOUR)} h`
        : `${Math.round(distance / DAY)} d`;
  return past > 0 ? `${amount} ago` : `in ${amount}`;
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
});

export function exactTime(at: number): string {
  return exact.format(at);
}

export function clockTime(at: number, now: number): string {
  return now - at < 12 * HOUR ? clock.format(at) : dayAndClock.format(at);
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.round(ms / 1000)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.round((ms % MINUTE) / 1000)} s`;
  return `${Math.floor(ms / HOUR)} h ${Math.round((ms % HOUR) / MINUTE)} min`;
}

export function dollars(amount: number): string {
  if (amount === 0) return '$0';
  return amount < 0.01 ? '< $0.01' : `$${amount.toFixed(2)}`;
}

interface Cost {
  readonly totalCostUsd: number;
  readonly costUnknown?: true | undefined;
  readonly costPending?: true | undefined;
}

/** What is known of a cost: a dash if nothing is, and a plus if there is more to come. */
export function costWords({ totalCostUsd, costUnknown, costPending }: Cost): string {
  const isMore = costUnknown === true || costPending === true;
  if (totalCostUsd === 0) return isMore ? '—' : dollars(0);
  return `${dollars(totalCostUsd)}${isMore ? '+' : ''}`;
}

export function costTitle({ costUnknown, costPending }: Cost): string | undefined {
  if (costUnknown === true) return 'It cost more than that: a turn was cut off before it reported its cost';
  return costPending === true ? 'What the current turn costs is reported when it ends' : undefined;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** What is done, with files by their path in the session, and what goes on beside it, also in a session at rest. */
export function activityWords({ activity = '', backgroundTasks = 0, cwd }: Activity): string {
  const beside = backgroundTasks > 0 ? [`${plural(backgroundTasks, 'background task')} running`] : [];
  // What is waited for stands at its end: a long path in front of it would be all that fits.
  const done = activity
    .split(': ')
    .map((part) => pathWithin(part, cwd))
    .join(': ');
  return [...(done === '' ? [] : [done]), ...beside].join(' · ');
}

interface Activity {
  readonly cwd: string;
  readonly activity?: string | undefined;
  readonly backgroundTasks?: number | undefined;
}

export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** A path below the session's directory is read without it. */
export function pathWithin(path: string, directory: string): string {
  const root = directory.replace(/[\\/]+$/, '');
  return path.startsWith(`${root}/`) || path.startsWith(`${root}\\`) ? path.slice(root.length + 1) : path;
}

interface Place {
  readonly cwd: string;
  readonly workspace?:
    { readonly type: string; readonly branch?: string | undefined; readonly origin?: string | undefined } | undefined;
}

/** The name of a project as people say it: its directory's, and the branch of a worktree. */
export function projectOf({ cwd, workspace }: Place): string {
  const directory = workspace?.origin ?? cwd;
  const name = directory.split(/[\\/]/).findLast((part) => part !== '') ?? directory;
  return workspace?.branch === undefined ? name : `${name} · ${workspace.branch}`;
}

/** A path with `~` for the home directory: the hub's, or what looks like one where that is not known. */
export function homePath(path: string, home?: string): string {
  if (home !== undefined) {
    const within = pathWithin(path, home);
    return path === home ? '~' : within === path ? path : `~${path.slice(-within.length - 1)}`;
  }
  return path.replace(/^(?:\/home\/[^/]+|\/Users\/[^/]+|\/root|[A-Z]:\\Users\\[^\\]+)(?=[\\/]|$)/, '~');
}

/** Whether an absolute path is not below a directory. */
export function isOutside(path: string, directory: string): boolean {
  const within = pathWithin(path, directory);
  const isBelow = within !== path && !within.split(/[\\/]/).includes('..');
  return !isBelow && path !== directory.replace(/[\\/]+$/, '') && /^([\\/]|[a-z]:)/i.test(path);
}

export function oneLine(text: string, longest = 160): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= longest ? line : `${line.slice(0, longest - 1)}…`;
}
