import { type Command, Option } from 'commander';
import { describeIssue } from '../../../workflows/contracts/input.ts';
import { type RunRequest, runInput } from '../../../workflows/contracts/run.ts';
import { defined, readInput } from '../follow/input-file.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { type HomeOption, runningConfigOf, stackCommand, wholeNumber } from '../stack/command.ts';
import { UsageError } from '../text/errors.ts';
import { note, print, printJson } from '../text/output.ts';
import { followRun, LetGo } from './train/follow-run.ts';

interface TrainOptions extends HomeOption {
  readonly input?: string;
  readonly id?: string;
  readonly tasks?: string;
  readonly steps?: number;
  readonly groups?: number;
  readonly rollouts?: number;
  readonly maxStaleness?: number;
  readonly seed?: number;
  readonly agent?: string;
  readonly sandbox?: 'auto' | 'docker' | 'local';
  readonly detach?: true;
  readonly json?: true;
}

export function trainCommand(): Command {
  return stackCommand(
    'train',
    'Starts a training run and follows it. Ctrl-C stops following; the run goes on.',
    'temper train --tasks generated:train/1 --steps 30 --groups 8 --rollouts 8',
  )
    .option('--input <file.json>', "the run's whole input; the options below replace single fields of it")
    .option('--id <name>', 'workflow id of the run (default: run-<time>)')
    .option('--tasks <set>', 'a task set, for example generated:train/1')
    .option('--steps <n>', 'optimizer updates', wholeNumber(1, 1_000_000))
    .option('--groups <n>', 'groups per step', wholeNumber(1, 256))
    .option('--rollouts <n>', 'rollouts per group', wholeNumber(1, 32))
    .option('--max-staleness <n>', 'steps that a group may trail', wholeNumber(0, 64))
    .option('--seed <n>', 'of tasks and weights', wholeNumber(0, 2 ** 31 - 1))
    .option('--agent <name>', 'which agent')
    .addOption(new Option('--sandbox <kind>', 'where it runs').choices(['auto', 'docker', 'local']))
    .option('--detach', 'print the id and return, instead of following')
    .option('--json', 'one JSON object per step on stdout, then the final status')
    .action(train);
}

async function train(options: TrainOptions): Promise<void> {
  const request = await requestOf(options);
  const { openStackClient } = await import('../stack/stack-client.ts');
  const { startRun } = await import('../follow/start-workflow.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  const interrupt = onInterrupt('stopping to follow; the run goes on');
  try {
    const id = options.id ?? `run-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}`;
    const handle = await startRun(stack.client, id, request);
    note(`started ${id}`);
    if (options.detach) {
      if (options.json) printJson({ run: id, runKey: handle.firstExecutionRunId });
      else print(id);
      return;
    }
    const onStep = options.json ? printJson : undefined;
    const status = await followRun(stack, id, { ...(onStep && { onStep }) }, interrupt.signal);
    if (options.json) printJson(status);
    else note(`done: see \`temper show ${id}\` and \`temper report ${id}\``);
  } catch (error) {
    if (!(error instanceof LetGo)) throw error;
    note(`${error.run} goes on; see \`temper show ${error.run}\`, end it with \`temper cancel ${error.run}\``);
  } finally {
    interrupt.release();
    await stack.close();
  }
}

/** The input file under the options, checked before anything starts. */
async function requestOf(options: TrainOptions): Promise<RunRequest> {
  const request = merge(options.input === undefined ? {} : await readInput(options.input), options);
  const parsed = runInput.safeParse(request);
  if (parsed.success) return request as RunRequest;
  throw new UsageError(
    `a run's input: ${parsed.error.issues.map((issue) => describeIssue(issue, request)).join('; ')}`,
  );
}

function merge(input: Readonly<Record<string, unknown>>, options: TrainOptions): Record<string, unknown> {
  const { tasks, steps, groups, rollouts, maxStaleness, seed, agent, sandbox } = options;
  const settings = typeof input.settings === 'object' ? input.settings : {};
  return {
    ...input,
    ...defined({ tasks, steps, groupsPerStep: groups, rolloutsPerGroup: rollouts, maxStaleness, seed }),
    settings: { ...settings, ...defined({ agent, sandbox }) },
  };
}
