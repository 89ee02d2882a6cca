import { type Command, Option } from 'commander';
import type { SandboxChoice } from '../../../../workflows/contracts/sandbox-kinds.ts';
import { type SweepRequest, sweepInput } from '../../../../workflows/contracts/sweep.ts';
import {
  agentOption,
  agentOptionsOption,
  hostToolsOption,
  readAgentOptions,
  requireAgent,
} from '../../follow/agent-options.ts';
import { leaveOutOption, offlineTestsOption } from '../../follow/network-options.ts';
import { onFlagOption } from '../../follow/on-flag-option.ts';
import { defined, readInput, requireValid } from '../../follow/workflow-input.ts';
import { type HomeOption, numberWithin, runningConfigOf, sandboxOption, wholeNumber } from '../../stack/command.ts';
import { parseBudget } from '../../text/budget.ts';
import { UsageError } from '../../text/errors.ts';

/** Fields of a sweep's input that are options of the same name. */
const inputFields = [
  'tasks',
  'count',
  'attempts',
  'concurrency',
  'weight',
  'budget',
  'onFlag',
  'policy',
  'policyVersion',
  'upstream',
  'passAt',
  'infraRetries',
  'seed',
  'reuseVerdicts',
  'leaveOut',
] as const satisfies readonly (keyof SweepRequest)[];

export interface SweepOptions extends Partial<Pick<SweepRequest, (typeof inputFields)[number]>> {
  /** Path of a JSON file. */
  readonly input?: string;
  /** Seed of the sample, and of the sampling. */
  readonly sample?: number;
  readonly agent?: string;
  /** Path of a JSON file. */
  readonly agentOptions?: string;
  readonly hostTools?: readonly string[];
  readonly sandbox?: SandboxChoice;
  readonly offlineTests?: true;
}

export function withSweepOptions(command: Command): Command {
  return command
    .option('--input <file.json>', 'input of the sweep as JSON; the options below override its fields')
    .option('--tasks <dir|address>', 'a directory of tasks, or an address such as generated:test/1')
    .option('--count <n>', 'number of tasks to evaluate (default: 32)', wholeNumber(1, 100_000))
    .option(
      '--sample <seed>',
      'evaluate a random sample of the set, drawn with this seed, instead of its first tasks',
      wholeNumber(0, 2 ** 31 - 1),
    )
    .addOption(
      new Option('--seed <n>', 'seed with which the model samples (default: that of --sample, else 1)')
        .argParser(wholeNumber(0, 2 ** 31 - 1))
        .conflicts('sample'),
    )
    .option('--attempts <k>', 'attempts per task (default: 1)', wholeNumber(1, 1000))
    .option('--concurrency <n>', 'rollouts that run at once (default: 16)', wholeNumber(1, 1_500))
    .option(
      '--weight <n>',
      'weight of the sweep among the sweeps that want slots (default: 1)',
      numberWithin(0.01, 1000),
    )
    .option(
      '--budget <limits>',
      'limits at which the sweep pauses, for example rollouts=1000,tokens=2M,sandbox-hours=40,wall-hours=8 (default: none)',
      parseBudget,
    )
    .addOption(agentOption('name of the agent (default: mini)'))
    .addOption(agentOptionsOption())
    .addOption(hostToolsOption())
    .addOption(sandboxOption())
    .addOption(onFlagOption())
    .option('--policy <run>', 'run whose policy is evaluated (default: the one that is open or ended last)')
    .option(
      '--policy-version <n>',
      'policy version to evaluate (default: the newest that the engines serve)',
      wholeNumber(0, 1_000_000_000),
    )
    .option('--upstream <name>', 'evaluate this model of upstreams.json instead of the policy')
    .option('--pass-at <reward>', 'minimum reward that counts as a pass (default: 1)', numberWithin(0.001, 1))
    .option('--infra-retries <n>', 'retries for an attempt lost to infrastructure (default: 2)', wholeNumber(0, 20))
    .option('--reuse-verdicts', 'reuse cached verdicts, and cache those of this sweep')
    .addOption(offlineTestsOption())
    .addOption(leaveOutOption());
}

/** Builds the sweep's input from the input file and the options, and checks it before anything starts. */
export async function sweepRequestOf(options: SweepOptions & HomeOption): Promise<SweepRequest> {
  const input = options.input === undefined ? {} : await readInput(options.input);
  const { sample, agent, hostTools, sandbox, offlineTests } = options;
  const agentOptions = await readAgentOptions(options);
  const settings = typeof input.settings === 'object' ? input.settings : {};
  const request = {
    ...input,
    ...defined(Object.fromEntries(inputFields.map((field) => [field, options[field]]))),
    ...(sample !== undefined && { pick: 'sample', seed: sample }),
    settings: { ...settings, ...defined({ agent, agentOptions, hostTools, sandbox, offlineTests }) },
  };
  if (!('tasks' in request)) {
    throw new UsageError(
      '--tasks <dir|address> is missing, for example --tasks generated:test/1; or name an --input with tasks',
    );
  }
  await requireAgent(requireValid('sweep', sweepInput, request).settings, await runningConfigOf(options));
  return request as SweepRequest;
}
