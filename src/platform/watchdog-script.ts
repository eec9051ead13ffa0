import { listCommand } from './windows-processes.ts';
import { OWNER_MARKER, RUN_MARKER, WATCHDOG_NAME } from './system.ts';

/*
 * The watchdog reads three lines, the owner, the start time of the server and what the paths of its cgroups begin with (empty
 * where there are none), then waits for more. `watch 6 a b` ends the runs a and b in 6 s unless it is told so again before that: they belong to
 * sessions that another hub takes over when this one hangs. Any other line means a clean end, the end of the input that the
 * server died. None of this is an argument, so that no `ps` shows it and no `pkill -f` finds it.
 */

/**
 * 3 s to exit when asked (the CLI needs 1.6 s just after a command started), 20 s in total; also limited by rounds,
 * since the clock may be set back. Two empty scans, since a process in the middle of `exec` shows no environment.
 * `hold` comes before the kill on macOS, or one could start another that nothing leads to any more. `scan` prints
 * pid@start, `born` sets `start`: checked again before each signal, since a pid may have been reused.
 */
const SHELL_LOOP = `
tell() {
  for found in $(scan); do
    empty=0 pid=\${found%%@*}
    if [ $1 = TERM ]; then
      case $asked in *" $found "*) continue ;; *) asked="$asked$found " ;; esac
    fi
    born $pid && [ "$pid@$start" = "$found" ] && kill -$1 $pid
  done
}
finish() {
  begin=$(date +%s) round=0 empty=0 asked=' '
  while [ $round -lt 100 ] && [ $empty -lt 2 ]; do
    passed=$(($(date +%s) - begin))
    [ $passed -lt 20 ] || break
    empty=$((empty + 1)) round=$((round + 1))
    if [ $passed -ge 3 ] || [ $round -gt 15 ]; then
      hold
      tell KILL
    else
      tell TERM
    fi
    [ $empty -ge 2 ] || sleep 0.2 || sleep 1
  done
}
`;

const SHELL_BEGIN = `
trap '' HUP INT QUIT TERM PIPE TSTP
exec 2>/dev/null
IFS= read -r owner && IFS= read -r since && IFS= read -r groups || exit 0
`;

/**
 * A timer is a separate process, since not every `sh` can read with a time limit. It is replaced whenever the server
 * renews its lease; once it has started to end runs it is left alone.
 */
const SHELL_WAIT = `
timer=
disarm() {
  [ -z "$timer" ] || kill -USR1 $timer
}
arm() {
  disarm
  [ -z "$timer" ] || wait $timer
  timer= limit=$1
  shift
  [ $# -gt 0 ] || return 0
  (
    trap 'kill -KILL $pause; exit 0' USR1
    sleep $limit &
    pause=$!
    wait $pause
    trap '' USR1
    for run in "$@"; do
      ( mark=${RUN_MARKER}=$run; finish; drop $run ) &
    done
    wait
  ) &
  timer=$!
}
while read -r word rest; do
  [ "$word" = watch ] || { disarm; exit 0; }
  arm $rest
done
disarm
mark=${OWNER_MARKER}=$owner
finish
drop ''
`;

/** One grep over all of /proc; without -z, as in some busybox, two processes for each pid that is young enough. */
const LINUX_SCAN = `
hold() { :; }
born() {
  IFS= read -r stat </proc/$1/stat || return 1
  set -- \${stat##*') '}
  start=\${20}
}
young() {
  pid=\${1#/proc/} pid=\${pid%/environ}
  born $pid && [ "$start" -ge "$since" ]
}
if printf 'a\\0b\\0' | grep -qzxF b; then
  marked() { grep -lszxF -e "$mark" /proc/[0-9]*/environ; }
else
  marked() {
    for file in /proc/[0-9]*/environ; do
      young $file && tr '\\0' '\\n' <$file | grep -qxF -e "$mark" && echo $file
    done
  }
fi
scan() { for file in $(marked); do young $file && echo "$pid@$start"; done; }
`;

/** What evaded every scan is still in its session's cgroup. */
const LINUX_GROUPS = `
drop() {
  [ -n "$groups" ] || return 0
  for group in "$groups$1"*; do
    tries=0
    while [ -d "$group" ] && [ $tries -lt 20 ]; do
      echo 1 >"$group/cgroup.kill"
      find "$group" -depth -type d -exec rmdir {} \\; || rmdir "$group"
      [ ! -d "$group" ] || sleep 0.1 || sleep 1
      tries=$((tries + 1))
    done
  done
}
`;

/** See darwin-processes.ts: two listings, and descendants too. Once found, a process stays ours while it lives. */
const DARWIN_SCAN = `
drop() { :; }
hold() { tell STOP; }
born() { start=$(ps -p $1 -o lstart= | tr -d ' '); }
list() { ps -A -ww "$@" -o pid=,ppid=,stat=,lstart=,command=; }
scan() {
  { list; echo; list -E; } | awk -v mark=" $mark " -v asked="$asked" -v name=${WATCHDOG_NAME} '
    $0 == "" { second = 1 }
    !/^ *[0-9]+ +[0-9]+ +[^ ]+ +[A-Z][a-z]+ +[A-Z][a-z]+ +[0-9]+ +[0-9:]+ +[0-9]+ / || $3 ~ /^Z/ { next }
    {
      pid = $1; start = $4 $5 $6 $7 $8; parent = $2
      sub(/^ *[0-9]+ +[0-9]+ +[^ ]+ +[A-Z][a-z]+ +[A-Z][a-z]+ +[0-9]+ +[0-9:]+ +[0-9]+ /, ""); sub(/ +$/, "")
    }
    !second {
      text[pid] = $0; born[pid] = start; above[pid] = parent
      if (index($0, name)) other[pid] = 1
      if (index(asked, " " pid "@" start " ")) ours[pid] = 1
      next
    }
    born[pid] == start && index($0, text[pid]) == 1 {
      environment = substr($0, length(text[pid]) + 1) " "
      if (index(environment, mark)) ours[pid] = 1
      else if (index(environment, " ${OWNER_MARKER}=")) other[pid] = 1
    }
    END {
      do {
        more = 0
        for (pid in above) if (!(pid in ours) && !(pid in other) && (above[pid] in ours)) { ours[pid] = 1; more = 1 }
      } while (more)
      for (pid in ours) if (pid in born) print pid "@" born[pid]
    }'
}
`;

/**
 * Node, since PowerShell is more expensive to keep waiting. The server's children keep its pid as their parent after it
 * exits.
 */
const WINDOWS_SCRIPT = `
const { execFileSync } = require('node:child_process');
const quiet = { encoding: 'utf8', windowsHide: true, stdio: ['ignore', 'pipe', 'ignore'], timeout: 10000 };
const list = ${JSON.stringify(listCommand())};
const server = process.ppid;
const ours = new Map();
let input = '';
const run = (file, args) => { try { return execFileSync(file, args, quiet); } catch { return ''; } };
function scan(since) {
  const all = run(list.file, list.args).split(/\\r?\\n/).map((line) => /^(\\d+) (\\d+) (\\d+)$/.exec(line.trim())).filter(Boolean)
    .map(([, pid, parent, start]) => ({ pid: +pid, parent: +parent, start: BigInt(start), key: pid + '@' + start }));
  for (let size = -1; size < ours.size; ) {
    size = ours.size;
    for (const child of all) {
      const born = child.parent === server ? since : ours.get(child.parent);
      if (born !== undefined && child.start >= born && child.pid !== process.pid && child.pid !== server) ours.set(child.pid, child.start);
    }
  }
  return all.filter(({ pid, start }) => ours.get(pid) === start);
}
function stop() {
  const [owner, since, , word] = input.split('\\n');
  if (!owner || !since || word) return;
  const until = performance.now() + 20000;
  for (let found = scan(BigInt(since)); found.length > 0 && performance.now() < until; found = scan(BigInt(since))) {
    for (const { pid } of found) run('taskkill', ['/F', '/PID', String(pid)]);
  }
}
let ended = false;
const end = () => { if (!ended) { ended = true; stop(); process.exit(0); } };
process.stdin.on('data', (chunk) => { input += chunk; }).on('end', end).on('close', end).on('error', end);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK']) { try { process.on(signal, () => {}); } catch {} }
`;

export function watchdogCommand(platform: NodeJS.Platform): { file: string; args: string[] } {
  if (platform === 'win32') return { file: process.execPath, args: ['-e', WINDOWS_SCRIPT, WATCHDOG_NAME] };
  const parts = platform === 'linux' ? LINUX_SCAN + LINUX_GROUPS : DARWIN_SCAN;
  return { file: '/bin/sh', args: ['-c', SHELL_BEGIN + parts + SHELL_LOOP + SHELL_WAIT, WATCHDOG_NAME] };
}
