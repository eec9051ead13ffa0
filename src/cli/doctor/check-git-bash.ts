import { findGitBash } from '../../config/git-bash.ts';
import { ok, problem, type Finding } from './finding.ts';

/** On Windows the commands of Claude Code run in Git Bash. Elsewhere there is nothing to check. */
export function checkGitBash(...asked: Parameters<typeof findGitBash>): Finding | undefined {
  const check = 'Git Bash';
  const bash = findGitBash(...asked);
  switch (bash.kind) {
    case 'not needed':
      return undefined;
    case 'found':
      return ok(check, bash.file);
    case 'missing':
      return problem(check, bash.problem, bash.remedy);
  }
}
