import type { Tool as ListedTool } from '@modelcontextprotocol/server';
import type { Settings } from '../config/load-settings.ts';
import type { Tool } from './define-tool.ts';
import { listedSchema } from './list-schema.ts';
import { TOOLSETS } from './toolsets.ts';

type Toolset = Settings['toolset'];

/**
 * The answer to tools/list until a session has reported the real names of its tools. The build evaluates this module
 * and ships only the value: creating and converting the schemas would be a third of the startup time.
 */
export const TOOL_LISTING: Readonly<Record<Toolset, readonly ListedTool[]>> = {
  compact: TOOLSETS.compact.map(listed),
  explicit: TOOLSETS.explicit.map(listed),
};

function listed(tool: Tool): ListedTool {
  return {
    name: tool.name,
    title: tool.title,
    description: tool.describe(undefined),
    inputSchema: listedSchema(tool.input()),
    outputSchema: listedSchema(tool.output()),
    annotations: { title: tool.title, ...tool.annotations },
  };
}
