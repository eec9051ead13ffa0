/**
 * Passes the hub's notifications on to ntfy, Slack or the desktop.
 *
 *   claude-code-mcp hub --notify 'node notify.mjs ntfy https://ntfy.sh/<topic>'
 *   claude-code-mcp hub --notify 'node notify.mjs slack https://hooks.slack.com/services/…'
 *   claude-code-mcp hub --notify 'node notify.mjs desktop'
 *
 * The hub gives each notification on stdin, and tries again for a day if this ends with an error.
 */

import { execFileSync } from 'node:child_process';
import { text } from 'node:stream/consumers';

const [, , service, url] = process.argv;
const { type, session, request, link } = JSON.parse(await text(process.stdin));

const title = type === 'request.opened' ? 'Claude needs an answer' : 'Claude has finished';
const what = {
  permission: `It asks to use ${request?.toolName}`,
  plan_review: 'It has a plan',
  user_question: 'It has a question',
};
const message = request
  ? `${what[request.kind] ?? 'It asks something'}.`
  : `Session ${session.id.slice(0, 8)} is ${session.status}.`;

/** Redirects are not followed: only this service is meant to read it. */
async function post(body, headers) {
  const { ok, status } = await fetch(url, { method: 'POST', redirect: 'error', headers, body });
  if (!ok) throw new Error(`${service} answered ${status}`);
}

if (service === 'ntfy') {
  await post(message, { title, click: link, priority: request ? 'high' : 'default', tags: 'robot' });
} else if (service === 'slack') {
  await post(JSON.stringify({ text: `*${title}*\n${message} <${link}|Open>` }), { 'content-type': 'application/json' });
} else if (service === 'desktop' && process.platform === 'darwin') {
  // As arguments, not as part of the script: nothing in them is run.
  const script = 'on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run';
  execFileSync('osascript', ['-e', script, title, message]);
} else if (service === 'desktop') {
  execFileSync('notify-send', ['--app-name=Claude Code', '--', title, `${message}\n${link}`]);
} else {
  throw new Error('Usage: notify.mjs ntfy <url> | slack <url> | desktop');
}
