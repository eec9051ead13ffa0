import { z } from 'zod';
import { permissionMode } from './session-options.ts';

const destination = z.enum(['userSettings', 'projectSettings', 'localSettings', 'session', 'cliArg']);
const rules = z.array(z.strictObject({ toolName: z.string(), ruleContent: z.string().exactOptional() }));
const behavior = z.enum(['allow', 'deny', 'ask']);
const directories = z.array(z.string());

/** A lasting change of permissions, as Claude Code suggests it with a request. */
export const permissionUpdate = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('addRules'), rules, behavior, destination }),
  z.strictObject({ type: z.literal('replaceRules'), rules, behavior, destination }),
  z.strictObject({ type: z.literal('removeRules'), rules, behavior, destination }),
  z.strictObject({ type: z.literal('setMode'), mode: permissionMode, destination }),
  z.strictObject({ type: z.literal('addDirectories'), directories, destination }),
  z.strictObject({ type: z.literal('removeDirectories'), directories, destination }),
]);
