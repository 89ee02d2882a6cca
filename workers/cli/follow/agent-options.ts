import { Option } from 'commander';
import type { Agent } from '../../../infra/agents/agent.ts';
import type { Config } from '../../../infra/config.ts';
import type { AgentOptions } from '../../../workflows/contracts/rollout.ts';
import { orUsageError } from '../text/errors.ts';
import { readInput } from './workflow-input.ts';

/** Creates the `--agent-options` option of commands that start rollouts. */
export const agentOptionsOption = (): Option =>
  new Option('--agent-options <file.json>', 'options of the agent as JSON; see `temper agents show`');

/** Reads the file that `--agent-options` names; undefined without the option. */
export const readAgentOptions = async ({
  agentOptions,
}: {
  readonly agentOptions?: string;
}): Promise<AgentOptions | undefined> =>
  agentOptions === undefined ? undefined : readInput(agentOptions, '--agent-options');

interface ChosenAgent {
  readonly agent: string;
  readonly agentOptions?: AgentOptions | undefined;
}

/** Finds an agent and applies its options. Throws a UsageError that names what is wrong. */
export async function agentOf({ agent, agentOptions }: ChosenAgent, { cacheDir }: Config): Promise<Agent> {
  const { createAgents } = await import('../../../infra/agents/index.ts');
  return orUsageError(() => createAgents({ cacheDir }).get(agent, agentOptions), '--agent');
}

/** Refuses an unknown agent, or options that it does not have, before a workflow starts. */
export async function requireAgent(chosen: ChosenAgent, config: Config): Promise<void> {
  await agentOf(chosen, config);
}
