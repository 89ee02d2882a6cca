import { type Command, Option } from 'commander';
import type { AgentSpec } from '../../../infra/agents/agent.ts';
import { type RewardPolicy, rewardPolicies } from '../../../workflows/contracts/resolution.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { type HomeOption, stackCommand, wholeNumber } from '../stack/command.ts';
import type { StackSession } from '../stack/stack-session.ts';
import { Interrupted, Unsuccessful, UsageError } from '../text/errors.ts';
import { note, print, printJson } from '../text/output.ts';
import { createRolloutBoard } from './rollout/board.ts';
import { findTasks } from './rollout/find-tasks.ts';
import { rolloutTable } from './rollout/result-table.ts';
import { runRollouts } from './rollout/run-rollouts.ts';

export interface RolloutOptions extends HomeOption {
  readonly tasks: string;
  readonly agent: string;
  readonly sandbox: 'auto' | 'docker' | 'local';
  readonly concurrency?: number;
  readonly maxTurns?: number;
  readonly agentTimeout?: number;
  readonly rewardPolicy?: RewardPolicy;
  readonly upstream?: string;
  readonly json?: true;
  readonly up: boolean;
}

export function rolloutCommand(): Command {
  return stackCommand(
    'rollout',
    'Runs an agent on tasks, one rollout each, and prints how each ended',
    'temper rollout --tasks ./tasks --agent oracle --sandbox docker --json',
  )
    .requiredOption(
      '--tasks <dir|address>',
      'a task directory, a directory of them, or an address such as generated:test/1?count=8',
    )
    .option('--agent <name>', 'which agent: oracle, nop, mini, …', 'mini')
    .addOption(new Option('--sandbox <kind>', 'where it runs').choices(['auto', 'docker', 'local']).default('auto'))
    .option('--concurrency <n>', 'rollouts at once (default: what the host has room for)', wholeNumber(1, 500))
    .option('--max-turns <n>', 'model calls per rollout', wholeNumber(1, 100_000))
    .option('--agent-timeout <seconds>', "instead of the task's own limit", wholeNumber(1, 1_000_000))
    .addOption(
      new Option('--reward-policy <name>', 'what the verdict on a log of tests is worth').choices(rewardPolicies),
    )
    .option('--upstream <name>', 'an upstream model of upstreams.json, instead of the policy')
    .option('--json', 'one JSON object per rollout on stdout')
    .option('--no-up', 'fail when no stack is running, instead of bringing one up for the duration')
    .action(rollout);
}

async function rollout(options: RolloutOptions): Promise<void> {
  const { openSession } = await import('../stack/stack-session.ts');
  const { createAgents } = await import('../../../infra/agents/index.ts');
  const interrupt = onInterrupt('cancelling the rollouts; waiting until they have cleaned up');
  const startedAt = performance.now();
  const session = await openSession(options, options.up, interrupt.signal);
  try {
    const agent = usage(() => createAgents({ cacheDir: session.config.cacheDir }).get(options.agent));
    if (options.upstream !== undefined) await checkUpstream(options.upstream, agent, session);
    const { ready, broken } = await findTasks(options.tasks, session, agent);
    const board = createRolloutBoard(ready.length + broken.length);
    interrupt.remains(() => board.remains(session.own !== null));
    const finish = (row: Parameters<typeof board.finished>[0]): void => {
      board.finished(row);
      if (options.json) printJson(row);
    };
    for (const row of broken) finish(row);
    const concurrency = options.concurrency ?? session.config.capacity + session.config.evaluations;
    const rows = [
      ...broken,
      ...(await runRollouts(
        session.client,
        ready,
        settingsOf(options),
        { concurrency, started: board.started, finish },
        interrupt.signal,
      )),
    ];
    board.close();
    if (!options.json) print(rolloutTable(rows, (performance.now() - startedAt) / 1000));
    conclude(rows, ready.length + broken.length, interrupt.signal);
  } finally {
    if (session.own !== null) note('taking the stack down');
    await session.close();
    interrupt.release();
  }
}

function settingsOf({ agent, sandbox, maxTurns, rewardPolicy, agentTimeout, upstream }: RolloutOptions) {
  return {
    ...{ agent, sandbox, purpose: 'evaluation' as const },
    ...(maxTurns !== undefined && { maxTurns }),
    ...(rewardPolicy !== undefined && { rewardPolicy }),
    ...(agentTimeout !== undefined && { agentTimeoutSec: agentTimeout }),
    ...(upstream !== undefined && { upstream }),
  };
}

/** The gateway knows them, and their keys: what is wrong is said before anything starts. */
async function checkUpstream(name: string, agent: AgentSpec, { config }: StackSession): Promise<void> {
  const { createGatewayControl } = await import('../../../infra/gateway/client.ts');
  const { controlSockets } = await import('../../../infra/gateway/sockets.ts');
  if (!agent.usesModel) {
    throw new UsageError(`--agent: expected one that calls a model, got ${agent.name}; it would not ask ${name}`);
  }
  const gateway = createGatewayControl(controlSockets(config.paths.gatewaySockets, config.gateways));
  await gateway.upstream(name).finally(() => gateway.end());
}

/** Every rollout has its outcome, or the command says that it doesn't. */
function conclude(rows: readonly { readonly outcome: string | null }[], asked: number, signal: AbortSignal): void {
  if (signal.aborted)
    throw new Interrupted(`interrupted: ${rows.length} of ${asked} rollouts had been started; all have ended`);
  const without = rows.filter(({ outcome }) => outcome === null).length;
  if (without > 0)
    throw new Unsuccessful(`${without} of ${rows.length} rollouts have no outcome; see their failures above`);
}

function usage<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new UsageError(`--agent: ${error instanceof Error ? error.message : String(error)}`);
  }
}
