import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { builtInHostTools } from '../../../workflows/contracts/host-tools.ts';
import { loadModule } from '../../load-module.ts';
import type { HostTool } from './host-tool.ts';

/** The default export of a module with host tools: one, several, or a function that returns them. */
export type HostToolModule =
  | HostTool
  | readonly HostTool[]
  | ((kit: { readonly z: typeof z }) => HostTool | readonly HostTool[]);

const toolOf = z.custom<HostTool>();
const shape = z.looseObject(
  {
    name: z
      .string({ error: 'expected a name' })
      .regex(/^[a-z][a-z0-9_]{0,39}$/, { error: 'expected up to 40 small letters, digits and underscores' }),
    description: z.string({ error: 'expected a text' }).min(1, { error: 'expected a text' }),
    input: z.record(
      z.string(),
      z.custom((value) => typeof value === 'object' && value !== null && '_zod' in value, {
        error: 'expected a zod schema',
      }),
      { error: 'expected zod schemas by name' },
    ),
    timeoutSec: z
      .number({ error: 'expected a number of seconds' })
      .positive()
      .max(300, { error: 'expected at most 300 seconds' })
      .optional(),
    call: z.custom((value) => typeof value === 'function', { error: 'expected a function' }),
  },
  { error: 'expected a host tool, a list of them, or a function that returns them' },
);

/**
 * Imports the host tools of the modules that `TEMPER_TOOLS` names: absolute paths, or packages. They are the operator's: a task
 * names its tools, and never brings their code. Throws TemperFailure InvalidInput, which names the module and the field that is wrong.
 */
export async function loadOwnTools(named: readonly string[]): Promise<readonly HostTool[]> {
  const taken = new Set<string>(builtInHostTools);
  const tools: HostTool[] = [];
  for (const from of named) {
    for (const given of await toolsOf(from)) {
      const parsed = shape.safeParse(given);
      if (!parsed.success) throw refusal(from, parsed.error.issues.map(problemOf).join('; '));
      const { name } = parsed.data;
      if (taken.has(name)) throw refusal(from, `name: expected a name that no other host tool has, got ${name}`);
      taken.add(name);
      tools.push(toolOf.parse(given));
    }
  }
  return tools;
}

async function toolsOf(from: string): Promise<readonly unknown[]> {
  try {
    const module = await loadModule(from, 'host tools');
    const made: unknown = typeof module === 'function' ? await module({ z }) : module;
    return Array.isArray(made) ? made : [made];
  } catch (error) {
    throw refusal(from, errorMessage(error));
  }
}

const problemOf = ({ path, message }: z.core.$ZodIssue): string =>
  path.length === 0 ? message : `${path.join('.')}: ${message}`;

const refusal = (from: string, problem: string): TemperFailure =>
  new TemperFailure('InvalidInput', `TEMPER_TOOLS: ${from}: ${problem}`);
