import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { describeIssue } from '../../workflows/contracts/input.ts';
import type { Agent, AgentSpec } from './agent.ts';

/** Options of an agent by name, as people write them. */
export type GivenOptions = Readonly<Record<string, unknown>>;

const placeholder = /\{\{\s*instruction\s*\}\}/g;
/** Names whose values are secrets by custom. Options are kept in the history, which must hold none. */
const secretName = /(?:^|_)(?:(?:API|ACCESS|PRIVATE)?_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
/** Variables of temper's own, of the sandbox, and of the relay that runs the agent. */
const reservedName = /^(?:TEMPER_.*|HOME|PATH|USER|SHELL|LD_.*|NODE_.*|BUN_OPTIONS)$/;

const variableName = z
  .string()
  .regex(/^[A-Za-z_]\w{0,99}$/, { error: 'expected the name of an environment variable' })
  .refine((name) => !reservedName.test(name), { error: 'expected another variable; temper sets this one itself' })
  .refine((name) => !secretName.test(name), {
    error: 'expected no secret; options are kept in the history, and only the gateway is given keys',
  });

/** The options of every agent that calls the model. temper applies them itself. */
const commonOptions = {
  instruction: z
    .string({ error: 'expected a text' })
    .refine((text) => [...text.matchAll(placeholder)].length === 1, {
      error: "expected a text with {{instruction}} exactly once, where the task's instruction goes",
    })
    .default('{{instruction}}')
    .describe(
      "The message that the agent gets: a text with `{{instruction}}` once, where the task's instruction goes.",
    ),
  environment: z
    .record(variableName, z.string({ error: 'expected a text' }).max(2000), { error: 'expected texts by name' })
    .default({})
    .describe('Environment variables of the agent, by name; no secrets, and none that temper sets itself.'),
} as const;

/** An option that is `on` or `off`. */
export const onOrOff = z.enum(['on', 'off'], { error: 'expected on or off' });

/** The time limit of one tool call, for agents that have one. */
export const toolTimeout = z
  .int({ error: 'expected a whole number of seconds from 1 to 86400' })
  .min(1, { error: 'expected a whole number of seconds from 1 to 86400' })
  .max(86_400, { error: 'expected a whole number of seconds from 1 to 86400' })
  .optional();

/** Names of tools. What an agent offers depends on its version, so that names are checked by their form alone. */
export const toolNames = z
  .array(
    z
      .string({ error: 'expected the name of a tool' })
      .regex(/^\w[\w.-]{0,99}$/, { error: 'expected the name of a tool' }),
    {
      error: 'expected a list of the names of tools',
    },
  )
  .min(1, { error: 'expected at least one tool' });

/** Definitions of sub-agents by name. */
const subAgentDefinitions = z.record(
  z.string().regex(/^[a-z][a-z0-9-]{0,39}$/, { error: 'expected a name of small letters, digits and hyphens' }),
  z.strictObject({
    description: z.string({ error: 'expected a text that says when to use the sub-agent' }).min(1),
    prompt: z.string({ error: 'expected the instructions of the sub-agent' }).min(1),
  }),
);
export type SubAgentDefinitions = z.output<typeof subAgentDefinitions>;

/** The option `subAgents` of agents that have them. */
export const subAgents = z
  .union([onOrOff, subAgentDefinitions], {
    error: 'expected on, off, or definitions by name, each with description and prompt',
  })
  .default('on')
  .describe(
    'Agents that the agent can give a task to: `off` for none, or definitions by name, each with `description` and `prompt`.',
  );

/**
 * Returns the option `arguments`: more arguments for the agent's command line. `own` are the options that temper sets itself;
 * `settings` are keys of `-c key=value` that temper sets itself.
 */
export function extraArguments(own: readonly string[], settings: readonly string[] = []) {
  const allowed = [...own, '--'].join(', ');
  const isOwn = (argument: string): boolean =>
    argument === '--' || own.some((option) => matchesOption(argument, option));
  const texts = z
    .array(z.string({ error: 'expected a text' }).max(2000), { error: 'expected a list of texts' })
    .superRefine((given, context) => {
      for (const [index, argument] of given.entries()) {
        const key = settings.length === 0 ? null : settingOf(given, index);
        const problem = isOwn(argument)
          ? `expected none of ${allowed}, which temper sets itself`
          : key !== null && settings.some((one) => key === one || key.startsWith(`${one}.`))
            ? `expected no setting of ${settings.join(', ')}, which temper sets itself`
            : null;
        if (problem !== null) context.addIssue({ code: 'custom', path: [index], message: problem });
      }
    });
  return texts.default([]).describe("More arguments for the agent's command line.");
}

/** Whether an argument is this option, alone or with its value attached: `-m`, `-mx`, `--model`, `--model=x`. */
const matchesOption = (argument: string, option: string): boolean =>
  argument === option || (option.startsWith('--') ? argument.startsWith(`${option}=`) : attached(argument, option));

const attached = (argument: string, option: string): boolean =>
  option.length === 2 && argument.startsWith(option) && !argument.startsWith('--');

/** Returns the key of `-c key=value` at an index, in any of its spellings; null if there is none. */
function settingOf(given: readonly string[], index: number): string | null {
  const before = given[index - 1];
  const text =
    before === '-c' || before === '--config' ? given[index] : given[index]?.match(/^(?:--config=|-c=?)(.+)$/s)?.[1];
  return text?.split('=')[0]?.trim().replaceAll('"', '') ?? null;
}

/** The schema of all options of an agent: the common ones and its own. */
export const optionsSchema = ({ usesModel, options = {} }: Pick<AgentSpec, 'usesModel' | 'options'>) =>
  z.strictObject({ ...(usesModel ? commonOptions : {}), ...options });

/** The names of the common options, which no agent can define again. */
export const commonNames: readonly string[] = Object.keys(commonOptions);

/** Applies options to an agent. Throws TemperFailure UnknownAgent, which names each invalid option and what is allowed. */
export function withOptions(spec: AgentSpec, given: GivenOptions): Agent {
  const options = parseOptions(spec, given);
  const { instruction: template, environment } = commonOf(options);
  refuseOwnVariables(spec, options, environment);
  return {
    ...spec,
    command: (start) => {
      const instruction = template.replace(placeholder, () => start.instruction);
      const { env, ...command } = spec.command({ ...start, instruction, options });
      return { ...command, env: { ...environment, ...env } };
    },
  };
}

const commonSchema = z.object(commonOptions);
const commonOf = (options: GivenOptions): z.output<typeof commonSchema> => commonSchema.parse(options);

function parseOptions(spec: AgentSpec, given: GivenOptions): GivenOptions {
  const schema = optionsSchema(spec);
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const names = Object.keys(schema.shape);
  const allowed = names.length === 0 ? `${spec.name} has no options` : `options of ${spec.name}: ${names.join(', ')}`;
  const problems = parsed.error.issues.map((issue) => problemOf(issue, given));
  throw refusal(spec, `${problems.join('; ')}; ${allowed}`);
}

/** Describes a problem without the value of a variable, which may be a secret. */
function problemOf(issue: z.core.$ZodIssue, given: GivenOptions): string {
  if (issue.path[0] !== 'environment' || issue.path.length < 2) return describeIssue(issue, given);
  const reasons = issue.code === 'invalid_key' ? issue.issues.map(({ message }) => message).join(', ') : issue.message;
  return `${issue.path.join('.')}: ${reasons}`;
}

const refusal = ({ name }: AgentSpec, problem: string): TemperFailure =>
  new TemperFailure('UnknownAgent', `${name}: ${problem}`);

/** A start with everything known, which makes an agent set all variables that it ever sets. */
const completeStart = {
  instruction: '',
  workdir: '/workspace',
  baseUrl: 'http://127.0.0.1:8080',
  secret: 'secret',
  maxTurns: 1,
  contextLength: 100_000,
} as const;

/** Refuses variables that the agent's own command sets, which would be ignored. */
function refuseOwnVariables(spec: AgentSpec, options: GivenOptions, environment: GivenOptions): void {
  if (Object.keys(environment).length === 0) return;
  const { env } = spec.command({ ...completeStart, options });
  const own = Object.keys(environment).filter((name) => name in env);
  if (own.length === 0) return;
  throw refusal(spec, `environment.${own.join(', environment.')}: expected other variables; temper sets these itself`);
}
