import type { Command } from 'commander';
import type { AgentSpec } from '../../../infra/agents/agent.ts';
import type { RolloutRequest } from '../../../workflows/contracts/rollout.ts';
import {
  agentOf,
  agentOption,
  agentOptionsOption,
  hostToolsOption,
  readAgentOptions,
} from '../follow/agent-options.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { leaveOutOption, type NetworkOptions, offlineTestsOption } from '../follow/network-options.ts';
import { requireReward } from '../follow/require-reward.ts';
import { type JsonOption, runningConfigOf, sandboxOption, stackCommand, wholeNumber } from '../stack/command.ts';
import type { StackSession } from '../stack/stack-session.ts';
import { Interrupted, Unsuccessful, UsageError } from '../text/errors.ts';
import { lostImages } from '../text/local-images.ts';
import { note, print, printJson } from '../text/output.ts';
import { createRolloutBoard } from './rollout/board.ts';
import { findTasks } from './rollout/find-tasks.ts';
import { rolloutTable } from './rollout/result-table.ts';
import type { RolloutRow } from './rollout/rollout-row.ts';
import { runRollouts, type SharedRequest } from './rollout/run-rollouts.ts';
import { watchRepeats } from './rollout/watch-repeats.ts';

/** Fields of a rollout's input that are options of the same name. */
type RequestOptions = Pick<RolloutRequest, 'sandbox' | 'maxTurns' | 'rewardPolicy' | 'policy' | 'upstream'>;

interface RolloutOptions extends JsonOption, RequestOptions, NetworkOptions {
  readonly tasks: string;
  readonly agent: string;
  /** Path of a JSON file. */
  readonly agentOptions?: string;
  readonly hostTools?: readonly string[];
  /** The agent's time limit in seconds. */
  readonly agentTimeout?: number;
  readonly concurrency?: number;
  readonly up: boolean;
}

export function rolloutCommand(): Command {
  return stackCommand(
    'rollout',
    'Runs an agent on tasks, one rollout per task, and prints how each one ended.',
    'temper rollout --tasks ./tasks --agent oracle --sandbox docker --json',
  )
    .requiredOption(
      '--tasks <dir|address>',
      'a task directory, a directory of task directories, or an address such as generated:test/1?count=8',
    )
    .addOption(agentOption('name of the agent, for example mini, oracle or nop').default('mini'))
    .addOption(agentOptionsOption())
    .addOption(hostToolsOption())
    .addOption(sandboxOption().default('auto'))
    .addOption(offlineTestsOption())
    .addOption(leaveOutOption())
    .option(
      '--concurrency <n>',
      'rollouts that run at once (default: TEMPER_CAPACITY and TEMPER_EVALUATIONS together)',
      wholeNumber(1, 500),
    )
    .option('--max-turns <n>', 'maximum number of model calls per rollout', wholeNumber(1, 100_000))
    .option(
      '--agent-timeout <seconds>',
      "time limit for the agent (default: the task's own)",
      wholeNumber(1, 1_000_000),
    )
    .option('--reward-policy <name>', 'how test results map to a reward: binary, fraction, fail-to-pass, or your own')
    .option('--policy <run>', 'run whose policy samples (default: the one that is open or ended last)')
    .option('--upstream <name>', 'use this model of upstreams.json instead of the policy')
    .option('--json', 'print one JSON object per rollout to stdout')
    .option('--no-up', 'fail if no stack is running, instead of starting one for this command')
    .action(rollout);
}

async function rollout(options: RolloutOptions): Promise<void> {
  const { openSession } = await import('../stack/stack-session.ts');
  const { requireTasks } = await import('../stack/task-source.ts');
  const { requireSandboxes } = await import('../stack/require-sandboxes.ts');
  const agentOptions = await readAgentOptions(options);
  const config = await runningConfigOf(options);
  const agent = await agentOf({ agent: options.agent, agentOptions }, config);
  if (options.rewardPolicy !== undefined) await requireReward(options.rewardPolicy, config);
  await requireTasks(options.tasks);
  const interrupt = onInterrupt('cancelling the rollouts; waiting for their clean-up');
  const startedAt = performance.now();
  const session = await openSession(options, options.up, interrupt.signal);
  try {
    if (options.upstream !== undefined) await requireUpstream(options.upstream, agent, session);
    const { ready, broken, lacking } = await findTasks(options, session, agent);
    const total = ready.length + broken.length;
    const images = ready.map(({ task }) => task.image);
    const wanted = { choice: options.sandbox ?? 'auto', tasks: ready.map(({ task }) => task) };
    await requireSandboxes(wanted, session, interrupt.signal);
    const lost = lostImages(options.sandbox ?? 'auto', session.config.sandbox, images);
    if (lost !== null) note(lost);
    const board = createRolloutBoard(total);
    interrupt.remains(() => board.remains(session.own !== null));
    const finished = (row: RolloutRow): void => {
      board.finished(row);
      if (options.json) printJson(row);
    };
    for (const row of broken) finished(row);
    const concurrency = options.concurrency ?? session.config.capacity + session.config.evaluations;
    const work = { request: { ...requestOf(options), agentOptions }, concurrency, started: board.started, finished };
    const watch = watchRepeats(session.client, board.running, board.repeats);
    const rows = [
      ...broken,
      ...(await runRollouts(session.client, ready, work, interrupt.signal).finally(watch.close)),
    ];
    board.close();
    if (!options.json) print(rolloutTable(rows, lacking, (performance.now() - startedAt) / 1000));
    requireOutcomes(rows, total, interrupt.signal);
  } finally {
    if (session.own !== null) note('stopping the stack');
    await session.close();
    interrupt.release();
  }
}

/** Builds the input that all rollouts of the command share. */
function requestOf({
  agent,
  sandbox,
  maxTurns,
  rewardPolicy,
  policy,
  upstream,
  agentTimeout,
  offlineTests,
}: RolloutOptions): SharedRequest {
  return {
    agent,
    sandbox,
    maxTurns,
    rewardPolicy,
    policy,
    upstream,
    agentTimeoutSec: agentTimeout,
    offlineTests,
    purpose: 'evaluation',
  };
}

/** Checks the upstream model before anything starts; only the gateway knows the models and their keys. */
async function requireUpstream(name: string, agent: AgentSpec, { config }: StackSession): Promise<void> {
  const { createGatewayControl } = await import('../../../infra/gateway/client.ts');
  const { controlSockets } = await import('../../../infra/gateway/sockets.ts');
  if (!agent.usesModel) {
    throw new UsageError(`--upstream: the agent ${agent.name} calls no model; name one that does with --agent`);
  }
  const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  await gateway.upstream(name).finally(() => gateway.end());
}

/** Fails the command unless every rollout has an outcome, and one of them another than `infra`. */
function requireOutcomes(rows: readonly RolloutRow[], total: number, signal: AbortSignal): void {
  if (signal.aborted) {
    throw new Interrupted(`interrupted: ${rows.length} of ${total} rollouts had started, and all of them have ended`);
  }
  const without = rows.filter(({ outcome }) => outcome === null).length;
  if (without > 0) {
    throw new Unsuccessful(`${without} of ${rows.length} rollouts have no outcome; their failures are listed above`);
  }
  if (rows.length > 0 && rows.every(({ outcome }) => outcome === 'infra')) {
    throw new Unsuccessful('every rollout ended as infra; their failures are listed above');
  }
}
