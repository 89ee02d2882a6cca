import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { HostTool, HostToolContext } from './host-tool.ts';

/** The host tools of a gateway, by name. */
export interface Toolbox {
  /** Throws TemperFailure UnsupportedTask if there is no tool of one of these names, or if one cannot work for the task. */
  require(names: readonly string[], task: HostToolContext['task']): Promise<void>;
  /** Returns the tools of these names, without those that are missing. */
  find(names: readonly string[]): readonly HostTool[];
}

const submit: HostTool = {
  name: 'submit',
  description:
    'Hand in your work and end. Call it once, alone, when everything is done: nothing that you do afterwards counts.',
  input: {},
  call: () => 'Your work is handed in.',
};

const answer: HostTool<{ answer: z.ZodString }> = {
  name: 'answer',
  description: 'Record your answer to the task. If you call it again, the last answer counts.',
  input: {
    answer: z
      .string()
      .max(60_000, { error: 'expected at most 60000 characters' })
      .describe('The answer, and nothing else.'),
  },
  call: () => 'The answer is recorded.',
};

/** Creates the table of tools: one line for each of temper's own, and those that the operator has given. */
export function createToolbox(own: readonly HostTool[] = []): Toolbox {
  const table = [submit, answer as unknown as HostTool, ...own];
  const byName = new Map(table.map((tool) => [tool.name, tool]));
  return {
    async require(names, task) {
      if (names.includes('answer') && names.includes('environment')) {
        throw new TemperFailure(
          'UnsupportedTask',
          'expected the host tool answer or environment, got both; the answer of the agent would pass for the reward of the environment',
        );
      }
      const missing = names.find((name) => !byName.has(name));
      if (missing !== undefined) {
        throw new TemperFailure(
          'UnsupportedTask',
          `expected host tools among ${[...byName.keys()].join(', ')}, got ${JSON.stringify(missing)}; name its module in TEMPER_TOOLS of every process of the stack`,
        );
      }
      for (const name of names)
        await byName
          .get(name)
          ?.check?.(task)
          .catch((error) => refuse(name, task, error));
    },
    find: (names) => names.flatMap((name) => byName.get(name) ?? []),
  };
}

/** Throws the failure of a tool's check. An error of a tool of the operator's own says why the task is not for it. */
function refuse(name: string, { id }: HostToolContext['task'], error: unknown): never {
  if (error instanceof TemperFailure) throw error;
  const message = `host tool ${name} cannot work for task ${id}: ${errorMessage(error)}`;
  throw new TemperFailure('UnsupportedTask', message, { cause: error });
}
