import { Command } from 'commander';
import { z } from 'zod';
import type { AgentSpec } from '../../../infra/agents/agent.ts';
import { optionsSchema } from '../../../infra/agents/options.ts';
import { sandboxKinds } from '../../../workflows/contracts/sandbox-kinds.ts';
import { openAgents } from '../follow/agent-options.ts';
import { configOf, type HomeOption, type JsonOption, stackCommand } from '../stack/command.ts';
import { UsageError } from '../text/errors.ts';
import { print, printJson, table } from '../text/output.ts';

export function agentsCommand(): Command {
  const list = stackCommand('list', 'Lists the agents.', 'temper agents list')
    .alias('ls')
    .option('--json', 'print one JSON object per agent to stdout')
    .action(listAgents);
  const show = stackCommand(
    'show',
    'Shows an agent and its options, which `--agent-options` and the field `agentOptions` of workflow inputs take.',
    'temper agents show claude-code',
  )
    .argument('<name>', 'name of the agent')
    .option('--json', 'print one JSON object to stdout, with the options as a JSON schema')
    .action(showAgent);
  return new Command('agents').description('Lists agents and their options.').addCommand(list).addCommand(show);
}

async function listAgents(options: JsonOption): Promise<void> {
  const specs = await agentsOf(options);
  if (options.json) {
    for (const spec of specs) printJson(describe(spec));
    return;
  }
  const rows = specs.map(({ name, description, sandboxes }) => [name, description, sandboxes?.join(', ') ?? 'any']);
  print(table(['agent', 'description', 'sandbox'], rows));
}

async function showAgent(name: string, options: JsonOption): Promise<void> {
  const specs = await agentsOf(options);
  const spec = specs.find((one) => one.name === name);
  if (spec === undefined) {
    throw new UsageError(`expected one of ${specs.map((one) => one.name).join(', ')}, got ${JSON.stringify(name)}`);
  }
  const shown = describe(spec);
  if (options.json) return printJson(shown);
  const { description, usesModel, sandboxes, options: schema } = shown;
  print(`${name}: ${description}`);
  print(`calls the model: ${usesModel ? 'yes' : 'no'}; sandbox: ${sandboxes.join(', ')}`);
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return print('It has no options.');
  const rows = fields.map(([option, field]) => {
    const { description: meaning = '', default: fallback } = typeof field === 'object' ? field : {};
    return [option, fallback === undefined ? '-' : JSON.stringify(fallback), meaning];
  });
  print(table(['option', 'default', 'meaning'], rows));
}

async function agentsOf(options: HomeOption): Promise<readonly AgentSpec[]> {
  const { specs } = await openAgents(configOf(options));
  return specs;
}

const describe = (spec: AgentSpec) => ({
  name: spec.name,
  description: spec.description,
  usesModel: spec.usesModel,
  sandboxes: spec.sandboxes ?? sandboxKinds,
  options: z.toJSONSchema(optionsSchema(spec), { io: 'input', unrepresentable: 'any' }),
});
