import { type Command, InvalidArgumentError, Option } from 'commander';
import { type SweepRequest, sweepInput } from '../../../../workflows/contracts/sweep.ts';
import { defined, readInput, requireValid } from '../../follow/workflow-input.ts';
import { wholeNumber } from '../../stack/command.ts';
import { UsageError } from '../../text/errors.ts';

/** Options that set fields of a sweep's input. */
export interface SweepOptions {
  readonly input?: string;
  readonly tasks?: string;
  readonly count?: number;
  readonly sample?: number;
  readonly attempts?: number;
  readonly concurrency?: number;
  readonly agent?: string;
  readonly sandbox?: 'auto' | 'docker' | 'local';
  readonly policyVersion?: number;
  readonly upstream?: string;
  readonly passAt?: number;
  readonly infraRetries?: number;
  readonly reuseVerdicts?: true;
}

export function withSweepOptions(command: Command): Command {
  return command
    .option('--input <file.json>', 'input of the sweep as JSON; the options below override its fields')
    .option('--tasks <set>', 'task set, for example generated:test/1')
    .option('--count <n>', 'number of tasks to evaluate (default: 32)', wholeNumber(1, 100_000))
    .option(
      '--sample <seed>',
      'evaluate a random sample of the set, drawn with this seed, instead of its first tasks',
      wholeNumber(0, 2 ** 31 - 1),
    )
    .option('--attempts <k>', 'attempts per task (default: 1)', wholeNumber(1, 1000))
    .option('--concurrency <n>', 'rollouts that run at once (default: 16)', wholeNumber(1, 500))
    .option('--agent <name>', 'name of the agent (default: mini)')
    .addOption(
      new Option('--sandbox <kind>', 'kind of sandbox for agent and tests').choices(['auto', 'docker', 'local']),
    )
    .option(
      '--policy-version <n>',
      'policy version to evaluate (default: the one that the engine serves)',
      wholeNumber(0, 1_000_000_000),
    )
    .option('--upstream <name>', 'evaluate this model of upstreams.json instead of the policy')
    .option('--pass-at <reward>', 'minimum reward that counts as a pass (default: 1)', share)
    .option('--infra-retries <n>', 'retries for an attempt lost to infrastructure (default: 2)', wholeNumber(0, 20))
    .option('--reuse-verdicts', 'reuse cached verdicts, and cache those of this sweep');
}

/** Builds the sweep's input from the input file and the options, and checks it before anything starts. */
export async function sweepRequestOf(options: SweepOptions): Promise<SweepRequest> {
  const input = options.input === undefined ? {} : await readInput(options.input);
  const {
    tasks,
    count,
    sample,
    attempts,
    concurrency,
    agent,
    sandbox,
    policyVersion,
    upstream,
    passAt,
    infraRetries,
    reuseVerdicts,
  } = options;
  const settings = typeof input.settings === 'object' ? input.settings : {};
  const request = {
    ...input,
    ...defined({ tasks, count, attempts, concurrency, policyVersion, upstream, passAt, infraRetries, reuseVerdicts }),
    ...(sample !== undefined && { pick: 'sample', seed: sample }),
    settings: { ...settings, ...defined({ agent, sandbox }) },
  };
  if (!('tasks' in request))
    throw new UsageError('expected --tasks <set>, for example --tasks generated:test/1, or an --input with tasks');
  requireValid('sweep', sweepInput, request);
  return request as SweepRequest;
}

function share(value: string): number {
  const number = Number(value);
  if (value.trim() !== '' && number >= 0.001 && number <= 1) return number;
  throw new InvalidArgumentError('Expected a number from 0.001 to 1.');
}
