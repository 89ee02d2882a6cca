import { Command } from 'commander';
import { z } from 'zod';
import type { AgentSpec } from '../../../infra/agents/agent.ts';
import { optionsSchema } from '../../../infra/agents/options.ts';
import { sandboxKinds } from '../../../workflows/contracts/sandbox-kinds.ts';
import { agentName, openAgents } from '../follow/agent-options.ts';
import { type JsonOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { orUsageError } from '../text/errors.ts';
import { describedList, print, printJson, table } from '../text/output.ts';

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
    .argument('<name>', 'name of the agent, or the module of one of your own')
    .option('--json', 'print one JSON object to stdout, with the options as a JSON schema')
    .action(showAgent);
  return new Command('agents').description('Lists agents and their options.').addCommand(list).addCommand(show);
}

async function listAgents(options: JsonOption): Promise<void> {
  const { specs } = await openAgents(await runningConfigOf(options));
  if (options.json) {
    for (const spec of specs) printJson(describe(spec));
    return;
  }
  const rows = specs.map(({ name, description, sandboxes }) => [name, description, sandboxes?.join(', ') ?? 'any']);
  print(table(['agent', 'description', 'sandbox'], rows));
}

async function showAgent(name: string, options: JsonOption): Promise<void> {
  const agents = await openAgents(await runningConfigOf(options));
  const spec = orUsageError(() => agents.get(agentName(name)));
  const shown = describe(spec);
  if (options.json) return printJson(shown);
  const { description, usesModel, sandboxes, options: schema } = shown;
  print(`${spec.name}: ${description}`);
  print(`calls the model: ${usesModel ? 'yes' : 'no'}; sandbox: ${sandboxes.join(', ')}`);
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return print('It has no options.');
  const items = fields.map(([option, field]) => {
    const { description: meaning = '', default: fallback, ...rest } = typeof field === 'object' ? field : {};
    const known = fallback === undefined ? '' : `; default ${JSON.stringify(fallback)}`;
    return { what: `${option}: ${valuesOf(rest)}${known}`, about: meaning === '' ? [] : [meaning] };
  });
  print(describedList('options:', items));
}

/** Describes the values that a schema takes, in words. */
function valuesOf(schema: z.core.JSONSchema.BaseSchema): string {
  const { type, enum: words, anyOf, items, minimum, maximum } = schema;
  if (anyOf !== undefined) return anyOf.map((one) => valuesOf(one)).join(', or ');
  if (words !== undefined) return either.format(words.map((word) => JSON.stringify(word)));
  if (type === 'array') {
    const { type: kind, enum: listed } = typeof items === 'object' && !Array.isArray(items) ? items : {};
    if (listed !== undefined) return `a list of ${valuesOf({ enum: listed })}`;
    return kind === 'string' ? 'a list of texts' : 'a list';
  }
  const names = [type].flat().map((one) => typeNames[String(one)] ?? 'any value');
  return `${either.format(names)}${rangeOf(minimum, maximum)}`;
}

function rangeOf(minimum = -Infinity, maximum = Infinity): string {
  const isBounded = [minimum, maximum].map((bound) => Math.abs(bound) < Number.MAX_SAFE_INTEGER);
  if (isBounded.every((one) => one)) return ` from ${minimum} to ${maximum}`;
  if (isBounded[0]) return ` of at least ${minimum}`;
  return isBounded[1] ? ` of at most ${maximum}` : '';
}

const either = new Intl.ListFormat('en-GB', { type: 'disjunction' });
const typeNames: Readonly<Record<string, string>> = {
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  null: 'null',
};

const describe = (spec: Omit<AgentSpec, 'command'>) => ({
  name: spec.name,
  description: spec.description,
  usesModel: spec.usesModel,
  sandboxes: spec.sandboxes ?? sandboxKinds,
  options: z.toJSONSchema(optionsSchema(spec), { io: 'input', unrepresentable: 'any' }),
});
