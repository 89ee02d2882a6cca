import { CancellationScope, log, workflowInfo } from '@temporalio/workflow';
import type { AgentEnd, Provisioned, StartAgent } from '../../activities/interfaces/host.ts';
import {
  agentOn,
  cleanUpOn,
  control,
  evaluation,
  images,
  onHost,
  placement,
  provisioningOn,
  sealing,
} from '../activities.ts';
import type { Diff } from '../contracts/diff.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import type { RolloutInput, Stage } from '../contracts/rollout.ts';
import type { ResolvedTask } from '../contracts/task.ts';
import { type TraceSummary, trainAllBranches } from '../contracts/trace.ts';
import type { Verdict } from '../contracts/verdict.ts';
import { StageFailure } from './failure.ts';
import type { Limits } from './limits.ts';
import type { Progress } from './progress.ts';

/** What an agent left behind: enough to evaluate it anywhere. */
export interface Produced {
  readonly end: AgentEnd;
  readonly diff: Diff;
  readonly trace: TraceSummary | null;
}

/**
 * One attempt of a rollout in one sandbox: image, place, provision, run the agent, keep what it made. Whatever happens, the
 * sandbox is released; if even that fails, the reaper removes it when its time is over.
 */
export async function produce(
  input: RolloutInput,
  resolved: ResolvedTask,
  limits: Limits,
  attempt: RolloutEpoch,
  progress: Progress,
): Promise<Produced> {
  const { task, usesModel } = resolved;
  const { agent, sandbox, maxTurns } = input;
  if (task.imageFrom !== undefined && sandbox !== 'local') {
    await progress.stage('prepareImage', () => images.prepareImage({ task, agent, sandbox }));
  }
  const { host } = await progress.stage('placeRollout', () =>
    placement(workflowInfo().priority).placeRollout({ attempt, lifetimeMs: limits.lifetimeMs }),
  );
  progress.host = host;
  let open = usesModel;
  let released = false;
  const releaseOnce = async (): Promise<void> => {
    if (released) return;
    released = true;
    await CancellationScope.nonCancellable(() => release(host, attempt, progress));
  };
  try {
    const { kind, baseCommit, contextLength, diskBeforeMb } = await prepare(
      input,
      resolved,
      limits,
      attempt,
      host,
      progress,
    );
    await onPlace(host, 'startAgent', progress, () =>
      onHost(host).startAgent({ attempt, task, agent, kind, maxTurns, contextLength }),
    );
    const end = await onPlace(host, 'awaitAgent', progress, () =>
      agentOn(host, limits.agentMs).awaitAgent({
        ...{ attempt, agent, kind, timeoutMs: limits.agentMs },
        ...(diskBeforeMb !== undefined && { diskBeforeMb }),
      }),
    );
    const diff = await onPlace(host, 'captureDiff', progress, () =>
      onHost(host).captureDiff({ attempt, kind, task, baseCommit }),
    );
    const seal = () => progress.stage('sealTrace', () => sealing.sealTrace({ attempt }));
    const [trace] = await both(usesModel ? seal() : Promise.resolve(null), releaseOnce());
    open = false;
    return { end, diff, trace };
  } finally {
    await releaseOnce();
    if (open) await CancellationScope.nonCancellable(() => closeTrace(attempt));
  }
}

/** Trace and sandbox are made at the same time: neither needs the other, and a rollout waits for the slower one only. */
async function prepare(
  { member, agent, sandbox, sampling, maxTurns, maxSampledTokens, branches, policyVersion, upstream }: RolloutInput,
  resolved: ResolvedTask,
  { lifetimeMs, sessionMs }: Limits,
  attempt: RolloutEpoch,
  host: string,
  progress: Progress,
): Promise<Provisioned & Required<Pick<StartAgent, 'contextLength'>>> {
  const { task, usesModel } = resolved;
  const group = { runKey: member?.runKey ?? null, group: member?.index ?? null };
  const openTrace = () =>
    progress.stage('openTrace', () =>
      control.openTrace({
        attempt,
        sampling,
        maxTurns,
        maxSampledTokens,
        lifetimeMs: sessionMs,
        ...group,
        branches: branches ?? resolved.branches ?? trainAllBranches,
        policyVersion,
        upstream,
      }),
    );
  const run = member?.run ?? '';
  const [opened, provisioned] = await both(
    usesModel ? openTrace() : Promise.resolve(null),
    onPlace(host, 'provisionSandbox', progress, () =>
      provisioningOn(host).provisionSandbox({ attempt, run, task, agent, sandbox, lifetimeMs }),
    ),
  );
  return { ...provisioned, contextLength: opened?.contextLength ?? null };
}

/** Waits for both even when one fails: what still runs would otherwise make something after the clean-up. */
async function both<First, Second>(first: Promise<First>, second: Promise<Second>): Promise<[First, Second]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}

/**
 * A stage on the rollout's own host. When nobody took it in time, ask whether the host is there at all: a busy one is
 * waited for, a lost one is left.
 */
async function onPlace<Result>(
  host: string,
  stage: Stage,
  progress: Progress,
  work: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await progress.stage(stage, work);
    } catch (error) {
      if (!(error instanceof StageFailure) || !error.neverStarted) throw error;
      const { alive } = await control.inspectHost({ host });
      if (!alive) throw error;
    }
  }
}

/** Clean-up never replaces the rollout's outcome: what fails here is logged, and left to the reaper. */
async function release(host: string, attempt: RolloutEpoch, progress: Progress): Promise<void> {
  await progress
    .stage('releaseSandbox', () => cleanUpOn(host).releaseSandbox({ attempt }), 'go on')
    .catch((error) => log.warn('the sandbox is left to the reaper', { error: String(error) }));
}

/** A session that was not sealed takes no more turns; if even that fails, it ends with its time. */
async function closeTrace(attempt: RolloutEpoch): Promise<void> {
  await control
    .closeTrace({ attempt })
    .catch((error) => log.warn('the session is left to expire', { error: String(error) }));
}

export async function evaluate(
  input: RolloutInput,
  { task }: ResolvedTask,
  limits: Limits,
  attempt: RolloutEpoch,
  diff: Diff,
  progress: Progress,
): Promise<{ readonly verdict: Verdict; readonly reward: number }> {
  const run = input.member?.run ?? '';
  const { sandbox, rewardPolicy, reuseVerdicts } = input;
  const reuse = reuseVerdicts === true ? { reuseVerdict: true as const } : {};
  const verdict = await progress.stage('evaluate', () =>
    evaluation(limits.evaluationMs).evaluate({
      attempt,
      run,
      task,
      sandbox,
      diff,
      timeoutMs: limits.evaluationMs,
      ...reuse,
    }),
  );
  const reward = await progress.stage('reward', () => control.reward({ verdict, policy: rewardPolicy }));
  return { verdict, reward };
}
