import { type Command, InvalidArgumentError, Option } from 'commander';
import { describeIssue } from '../../../../workflows/contracts/input.ts';
import { type SweepRequest, sweepInput } from '../../../../workflows/contracts/sweep.ts';
import { defined, readInput } from '../../follow/input-file.ts';
import { wholeNumber } from '../../stack/command.ts';
import { UsageError } from '../../text/errors.ts';

/** What of a sweep's input has an option of its own. */
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
    .option('--input <file.json>', "the sweep's whole input; the options below replace single fields of it")
    .option('--tasks <set>', 'a task set, for example generated:test/1')
    .option('--count <n>', 'so many of its tasks (default: 32)', wholeNumber(1, 100_000))
    .option('--sample <seed>', 'a sample of them by this seed, instead of the first', wholeNumber(0, 2 ** 31 - 1))
    .option('--attempts <k>', 'at each task (default: 1)', wholeNumber(1, 1000))
    .option('--concurrency <n>', 'rollouts at once (default: 16)', wholeNumber(1, 500))
    .option('--agent <name>', 'which agent (default: mini)')
    .addOption(new Option('--sandbox <kind>', 'where it runs').choices(['auto', 'docker', 'local']))
    .option('--policy-version <n>', 'which version (default: the one in service)', wholeNumber(0, 1_000_000_000))
    .option('--upstream <name>', 'an upstream model of upstreams.json, instead of the policy')
    .option('--pass-at <reward>', 'an attempt passes from this reward on (default: 1)', share)
    .option('--infra-retries <n>', 'for an attempt that ends as infra (default: 2)', wholeNumber(0, 20))
    .option('--reuse-verdicts', 'take cached verdicts where there are any, and keep those of this sweep');
}

/** The input file under the options, checked before anything starts. */
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
  const parsed = sweepInput.safeParse(request);
  if (parsed.success) return request as SweepRequest;
  throw new UsageError(
    `a sweep's input: ${parsed.error.issues.map((issue) => describeIssue(issue, request)).join('; ')}`,
  );
}

function share(value: string): number {
  const number = Number(value);
  if (value.trim() !== '' && number >= 0.001 && number <= 1) return number;
  throw new InvalidArgumentError('Expected a number from 0.001 to 1.');
}
