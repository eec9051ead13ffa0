import { variableOfAncestors } from '../platform/ancestors.ts';
import { DEPTH_VARIABLE, depthFrom, type Settings } from './load-settings.ts';

/**
 * The depth according to the parent processes. A project's `.mcp.json` could reset the variable for the server it names
 * and start servers endlessly; it cannot change the environment of the Claude Code that reads it. Linux only.
 */
export function withDepthOfAncestors(settings: Settings, platform?: NodeJS.Platform): Settings {
  let { depth, maxDepth } = settings;
  for (const value of variableOfAncestors(DEPTH_VARIABLE, platform)) {
    const above = depthFrom({ [DEPTH_VARIABLE]: value });
    depth = Math.max(depth, above.depth);
    maxDepth = Math.min(maxDepth, above.limit);
  }
  return depth === settings.depth && maxDepth === settings.maxDepth ? settings : { ...settings, depth, maxDepth };
}
