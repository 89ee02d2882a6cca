import type { Command } from 'commander';
import type { Config } from '../../../infra/settings/config.ts';
import type { BudgetChange } from '../../../workflows/contracts/budget.ts';
import type { OnFlag } from '../../../workflows/contracts/on-flag.ts';
import type { AgentOptions } from '../../../workflows/contracts/rollout.ts';
import { type RunRequest, type RunStatus, runInput } from '../../../workflows/contracts/run.ts';
import type { SandboxChoice } from '../../../workflows/contracts/sandbox-kinds.ts';
import {
  agentOption,
  agentOptionsOption,
  hostToolsOption,
  readAgentOptions,
  requireAgent,
} from '../follow/agent-options.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { leaveOutOption, type NetworkOptions, offlineTestsOption } from '../follow/network-options.ts';
import { onFlagOption } from '../follow/on-flag-option.ts';
import { defined, readInput, requireValid, withTaskSet } from '../follow/workflow-input.ts';
import {
  type JsonOption,
  numberWithin,
  runningConfigOf,
  sandboxOption,
  stackCommand,
  wholeNumber,
} from '../stack/command.ts';
import { parseBudget } from '../text/budget.ts';
import { asUsageError, Interrupted } from '../text/errors.ts';
import { counted, note, print, printJson } from '../text/output.ts';
import { followRun, StoppedFollowing } from './train/follow-run.ts';

interface TrainOptions extends JsonOption, NetworkOptions {
  readonly input?: string;
  readonly id?: string;
  readonly tasks?: string;
  readonly steps?: number;
  readonly groups?: number;
  readonly rollouts?: number;
  readonly maxStaleness?: number;
  readonly seed?: number;
  readonly pool?: string;
  readonly weight?: number;
  readonly budget?: BudgetChange;
  readonly agent?: string;
  /** Path of a JSON file. */
  readonly agentOptions?: string;
  readonly hostTools?: readonly string[];
  readonly sandbox?: SandboxChoice;
  readonly onFlag?: OnFlag;
  readonly allowTruncatedSampling?: true;
  readonly detach?: true;
}

export function trainCommand(): Command {
  return stackCommand(
    'train',
    'Starts a training run and follows it. Ctrl-C stops following; the run continues.',
    'temper train --tasks generated:train/1 --steps 30 --groups 8 --rollouts 8',
  )
    .option('--input <file.json>', 'input of the run as JSON; the options below override its fields')
    .option('--id <name>', 'workflow id of the run (default: run-<time>)')
    .option('--tasks <dir|address>', 'a directory of tasks, or an address such as generated:train/1')
    .option('--steps <n>', 'number of optimizer updates', wholeNumber(1, 1_000_000))
    .option('--groups <n>', 'groups per step', wholeNumber(1, 256))
    .option('--rollouts <n>', 'rollouts per group', wholeNumber(2, 32))
    .option(
      '--max-staleness <n>',
      'maximum number of steps by which the policy version of a group may lag',
      wholeNumber(0, 64),
    )
    .option('--seed <n>', 'seed for task order, weight initialisation and sampling', wholeNumber(0, 2 ** 31 - 1))
    .option('--pool <name>', 'pool of engines that serves the policy (default: the one that the environment names)')
    .option('--weight <n>', 'weight of the run among those that want slots (default: 1)', numberWithin(0.01, 1000))
    .option(
      '--budget <limits>',
      'limits at which the run pauses, for example rollouts=1000,tokens=2M,sandbox-hours=40,wall-hours=8 (default: none)',
      parseBudget,
    )
    .addOption(agentOption('name of the agent (default: mini)'))
    .addOption(agentOptionsOption())
    .addOption(hostToolsOption())
    .addOption(sandboxOption())
    .addOption(offlineTestsOption())
    .addOption(leaveOutOption())
    .addOption(onFlagOption())
    .option(
      '--allow-truncated-sampling',
      'train on tokens sampled with topP below 1 or with topK, which biases the updates',
    )
    .option('--detach', 'print the id and exit instead of following the run')
    .option('--json', 'print one JSON object per step to stdout, then the final status')
    .action(train);
}

async function train(options: TrainOptions): Promise<void> {
  const request = await requestOf(options);
  const { openStackClient } = await import('../stack/stack-client.ts');
  const { requireRunTasks } = await import('../stack/require-tasks.ts');
  const { requireSandboxes } = await import('../stack/require-sandboxes.ts');
  const { setName } = await import('../stack/set-name.ts');
  const { startRun, timestampedId } = await import('../follow/start-workflow.ts');
  const config = await runningConfigOf(options);
  await requireKnownPool(config, request.pool);
  const stack = await openStackClient(config);
  let starts = false;
  const interrupt = onInterrupt(() => (starts ? 'no longer following; the run continues' : 'ending; no run starts'));
  try {
    const id = options.id ?? timestampedId('run');
    const named = await withTaskSet(request, stack, interrupt.signal);
    await requireRunTasks(named, stack, interrupt.signal);
    await requireSandboxes({ choice: named.settings?.sandbox ?? 'auto' }, stack, interrupt.signal);
    interrupt.signal.throwIfAborted();
    starts = true;
    const handle = await startRun(stack.client, id, named, await setName(stack, named.tasks));
    note(`started ${id}`);
    if (options.detach) {
      if (options.json) printJson({ run: id, runKey: handle.firstExecutionRunId });
      else print(id);
      return;
    }
    const status = await followRun(stack, id, options.json ? { onStep: printJson } : {}, interrupt.signal);
    if (options.json) printJson(status);
    else note(`${doneText(status)}: see \`temper show ${id}\` and \`temper report ${id}\``);
  } catch (error) {
    if (!(error instanceof StoppedFollowing)) throw error;
    throw new Interrupted(
      `interrupted: ${error.run} continues; see \`temper show ${error.run}\`, cancel it with \`temper cancel ${error.run}\``,
    );
  } finally {
    interrupt.release();
    await stack.close();
  }
}

/** Builds the run's input from the input file and the options, and checks it before anything starts. */
async function requestOf(options: TrainOptions): Promise<RunRequest> {
  const input = options.input === undefined ? {} : await readInput(options.input);
  const request = merge(input, options, await readAgentOptions(options));
  await requireAgent(requireValid('run', runInput, request).settings, await runningConfigOf(options));
  return request as RunRequest;
}

/** Refuses an unknown pool where all processes of the stack are on this machine, so that they read the same file. */
async function requireKnownPool({ store, pools }: Config, pool: string | undefined): Promise<void> {
  if (pool === undefined || store.kind !== 'directory') return;
  const { requirePool } = await import('../../../infra/engine/pools.ts');
  await requirePool(pools, pool).catch((error: unknown) => {
    throw asUsageError(error);
  });
}

function merge(
  input: Readonly<Record<string, unknown>>,
  options: TrainOptions,
  agentOptions: AgentOptions | undefined,
): Record<string, unknown> {
  const { tasks, steps, groups, rollouts, maxStaleness, seed, pool, weight, budget, leaveOut, onFlag } = options;
  const { agent, hostTools, sandbox, offlineTests, allowTruncatedSampling } = options;
  const settings = typeof input.settings === 'object' ? input.settings : {};
  return {
    ...input,
    ...defined({
      tasks,
      steps,
      groupsPerStep: groups,
      rolloutsPerGroup: rollouts,
      maxStaleness,
      seed,
      pool,
      weight,
      budget,
      leaveOut,
      onFlag,
      allowTruncatedSampling,
    }),
    settings: { ...settings, ...defined({ agent, agentOptions, hostTools, sandbox, offlineTests }) },
  };
}

/** Says that a run is done, and how many updates it made if not each of its steps made one. */
const doneText = ({ step, updates }: Pick<RunStatus, 'step' | 'updates'>): string =>
  updates === step ? 'done' : `done, with ${counted(updates, 'update')} in ${counted(step, 'step')}`;
