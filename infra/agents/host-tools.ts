import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { AgentSpec, AgentStart } from './agent.ts';
import { hostToolsPath } from './relay/protocol.ts';

/** The name of the gateway's MCP server in agents' configurations. Agents make it part of the names of its tools. */
export const hostToolServer = 'temper';

/** The seconds that an agent waits for a host tool: longer than any tool may take. */
export const hostToolTimeoutSec = 330;

/** Returns the address of the host tools in the sandbox; null if the agent has none. */
export const hostToolsUrl = (baseUrl: string, { hostTools = [] }: Pick<AgentStart, 'hostTools'>): string | null =>
  hostTools.length === 0 ? null : `${baseUrl}${hostToolsPath}`;

/**
 * Returns the host tools of a rollout: those of its settings, or else those that its task asks for. Throws UnsupportedTask if the
 * agent can call none, if the task has several steps, or if the settings leave out one that the task asks for.
 */
export function hostToolsOf(
  { name, usesModel, takesHostTools = false }: Pick<AgentSpec, 'name' | 'usesModel' | 'takesHostTools'>,
  task: Pick<Task, 'id' | 'hostTools' | 'steps'>,
  allowed: readonly string[] | undefined,
): readonly string[] {
  if (!usesModel) return [];
  const asked = task.hostTools ?? [];
  const tools = allowed ?? asked;
  const lacking = asked.find((tool) => !tools.includes(tool));
  if (lacking !== undefined) {
    throw new TemperFailure(
      'UnsupportedTask',
      `task ${task.id} asks for the host tool ${lacking}, which hostTools of the settings leaves out; add it, or leave hostTools away`,
    );
  }
  if (tools.length > 0 && task.steps !== undefined) {
    throw new TemperFailure(
      'UnsupportedTask',
      `task ${task.id} has several steps, whose agents share one session, and host tools (${tools.join(', ')}) belong to a session; leave out hostTools`,
    );
  }
  if (tools.length > 0 && !takesHostTools) {
    throw new TemperFailure(
      'UnsupportedTask',
      `agent ${name} cannot call host tools, and the rollout has ${tools.join(', ')}; take another agent`,
    );
  }
  return tools;
}
