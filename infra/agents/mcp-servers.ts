import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { McpServer } from '../harbor/mcp-servers.ts';
import type { AgentSpec } from './agent.ts';

/** Throws UnsupportedTask for a task with an MCP server that the agent, which calls the model, cannot call. */
export function requireMcpServers(
  { name, usesModel, mcpTransports = [] }: Pick<AgentSpec, 'name' | 'usesModel' | 'mcpTransports'>,
  { task, mcpServers }: { readonly task: string; readonly mcpServers: readonly McpServer[] },
): void {
  const lacking = usesModel ? mcpServers.find(({ transport }) => !mcpTransports.includes(transport)) : undefined;
  if (lacking === undefined) return;
  const can = mcpTransports.length === 0 ? 'calls none' : `calls those over ${mcpTransports.join(' and ')} only`;
  throw new TemperFailure(
    'UnsupportedTask',
    `task ${task} has the MCP server ${lacking.name} over ${lacking.transport}, and agent ${name} ${can}; use another agent, such as claude-code`,
  );
}
