import path from 'node:path';

const MENTION = /(?:^|\s)@(?:"([^"]+)"|(\S+))/g;

/**
 * The files that a prompt makes Claude Code read: it attaches whatever `@path` names without asking anybody, also
 * outside of the session's directory. Each is given as it stands and without what Claude Code may cut off its end.
 */
export function mentionedPaths(prompt: string, { cwd, home }: { cwd: string; home: string }): string[] {
  const written = [...prompt.matchAll(MENTION)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  return written
    .flatMap((mention) => [mention, mention.replace(/#.*$/, ''), mention.replace(/[^\p{L}\p{N}_/\\]+$/u, '')])
    .map((mention) => path.resolve(cwd, mention.replace(/^~(?=$|[/\\])/, home)));
}
