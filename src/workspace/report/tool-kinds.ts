/** Tools of Claude Code that run a command. */
export const COMMAND_TOOLS: ReadonlySet<string> = new Set(['Bash', 'PowerShell']);
/** Tools of Claude Code that write a file. */
export const EDIT_TOOLS: ReadonlySet<string> = new Set(['Edit', 'MultiEdit', 'Write', 'NotebookEdit']);
