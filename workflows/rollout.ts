import { CancellationScope, isCancellation, log, setHandler, workflowInfo } from '@temporalio/workflow';
import { control, inWorkflowTask } from './activities.ts';
import { maxEpochs } from './activity-options.ts';
import { flagsOfRollout } from './algorithms/flags.ts';
import { withOfflineTests } from './algorithms/offline-tests.ts';
import { verdictText } from './algorithms/verdict-text.ts';
import { type FailureRecord, failureKinds } from './contracts/failures.ts';
import { parseInput } from './contracts/input.ts';
import { hostLostSignal, pauseSignal, resumeSignal, rolloutStatusQuery, stopSignal } from './contracts/messages.ts';
import type { Outcome } from './contracts/outcome.ts';
import { isOwnPolicy } from './contracts/resolution.ts';
import { type RolloutInput, type RolloutRequest, type RolloutResult, rolloutInput } from './contracts/rollout.ts';
import type { ResolvedTask } from './contracts/task.ts';
import { countRollout } from './rollout/count.ts';
import { EndedBefore } from './rollout/ended-before.ts';
import { produce } from './rollout/epoch.ts';
import type { EpochContext, Produced } from './rollout/epoch-context.ts';
import { evaluate } from './rollout/evaluate.ts';
import { isSandboxLost, StageFailure } from './rollout/failure.ts';
import { createHostLoss, type HostLoss } from './rollout/host-loss.ts';
import { type CostMeter, createCostMeter } from './rollout/meter.ts';
import { createProgress, type Progress } from './rollout/progress.ts';
import { recordResult } from './rollout/record.ts';
import { timeLimitsOf } from './rollout/time-limits.ts';
import { unscored } from './rollout/unscored.ts';

/** Everything known when a rollout ends. The result is built from it in one place. */
interface Ending {
  readonly outcome: Outcome;
  readonly failure?: FailureRecord;
  readonly resolved?: ResolvedTask;
  readonly produced?: Produced;
  readonly verdict?: RolloutResult['verdict'];
  readonly reward?: number;
}

/**
 * Lets one agent work at one task and grades the result. It always ends with an outcome: a failed stage, a lost host and a
 * stop are data in its result. Only an invalid input fails it, and only a cancel of the workflow itself cancels it.
 */
export async function rollout(request: RolloutRequest): Promise<RolloutResult> {
  const input = parseInput('rollout', rolloutInput, request);
  const taskName = typeof input.task === 'string' ? input.task : input.task.task.id;
  const progress = createProgress(taskName, input.agent, input.member?.run ?? null);
  const scope = new CancellationScope();
  const loss = createHostLoss();
  const meter = createCostMeter();
  let stopped: Extract<Outcome, 'stale' | 'cancelled'> | null = null;
  setHandler(rolloutStatusQuery, () => progress.status(), { description: 'stage, host, epoch and outcome' });
  setHandler(pauseSignal, (reason) => progress.pause(reason ?? 'by hand'), {
    description: 'lets the stage in progress end and starts no other; takes a reason',
  });
  setHandler(resumeSignal, () => progress.resume(), { description: 'continues after a pause' });
  const stop = (outcome: Extract<Outcome, 'stale' | 'cancelled'>): void => {
    stopped ??= outcome;
    scope.cancel();
  };
  setHandler(hostLostSignal, (host, generation) => loss.declare(host, generation), {
    description: 'sent when a host is declared lost: the rollout leaves it and begins again elsewhere',
  });
  setHandler(stopSignal, stop, { description: 'cleans up and ends with this outcome: "stale" or "cancelled"' });

  let ending: Ending;
  let cancelled: unknown = null;
  let before: RolloutResult | null = null;
  try {
    ending = await scope.run(() => perform({ input, progress, loss, meter }));
  } catch (error) {
    if (error instanceof EndedBefore) before = error.result;
    else if (!isCancellation(error)) throw error;
    ending = { outcome: stopped ?? 'cancelled' };
    if (before === null && stopped === null) cancelled = error;
  }
  const own = toResult({ input, progress, loss, meter }, taskName, ending);
  const result = before ?? (await recordResult(input, own));
  const { outcome, reward, failure } = result;
  if (result === own) countRollout(input, { ...ending, adoptions: progress.adoptions });
  const account = result === own ? accountOf(ending) : 'the result of an earlier record counts';
  progress.finish({ outcome, reward, failure, account });
  if (cancelled !== null) throw cancelled;
  return result;
}

/** The part of an epoch's context that is known before the task is. */
interface Basis {
  readonly input: RolloutInput;
  readonly progress: Progress;
  readonly loss: HostLoss;
  readonly meter: CostMeter;
}

async function perform(basis: Basis): Promise<Ending> {
  const { input } = basis;
  let resolved: ResolvedTask | undefined;
  let produced: Produced | undefined;
  try {
    resolved = await resolve(basis);
    produced = await produceInEpochs(basis, resolved);
    const excused = unscored({ ...input, ...timeLimitsOf(input, resolved) }, produced);
    if (excused !== null) return { outcome: 'cancelled', failure: excused, resolved, produced };
    const { verdict, reward } = await evaluate(currentEpoch(basis, resolved), produced);
    return { outcome: 'scored', resolved, produced, verdict, reward };
  } catch (error) {
    if (!(error instanceof StageFailure)) throw error;
    const { outcome } = failureKinds[error.record.type];
    return {
      outcome: outcome === 'refused' ? 'invalid-task' : outcome,
      failure: error.record,
      ...(resolved && { resolved }),
      ...(produced && { produced }),
    };
  }
}

async function resolve({ input, progress }: Basis): Promise<ResolvedTask> {
  const { task, agent, agentOptions, hostTools, rewardPolicy, upstream, offlineTests } = input;
  if (typeof task !== 'string') return offlineTests ? { ...task, task: withOfflineTests(task.task) } : task;
  const query = {
    address: task,
    agent,
    ...(agentOptions !== undefined && { agentOptions }),
    ...(hostTools !== undefined && { hostTools }),
    ...(!isOwnPolicy(rewardPolicy) && { rewardPolicy }),
    ...(upstream !== undefined && { upstream }),
    ...(offlineTests && { offlineTests }),
  };
  return progress.stage('resolveTask', () =>
    inWorkflowTask.resolveTask(query).catch((error) => {
      if (isCancellation(error)) throw error;
      // As an activity of its own it is tried again, and people see why it fails.
      return control.resolveTask(query);
    }),
  );
}

function currentEpoch(basis: Basis, resolved: ResolvedTask): EpochContext {
  const { firstExecutionRunId } = workflowInfo();
  return {
    ...basis,
    resolved,
    limits: timeLimitsOf(basis.input, resolved),
    epoch: { rollout: firstExecutionRunId, epoch: basis.progress.epoch },
  };
}

/** Retries in a fresh sandbox when the current one is lost. The epoch is raised first to fence off late results. */
async function produceInEpochs(basis: Basis, resolved: ResolvedTask): Promise<Produced> {
  const { progress } = basis;
  for (;;) {
    try {
      return await produce(currentEpoch(basis, resolved));
    } catch (error) {
      if (!(error instanceof StageFailure) || !isSandboxLost(error) || progress.epoch >= maxEpochs) throw error;
      log.warn('the sandbox was lost; the rollout starts again in a fresh one', {
        ...error.record,
        epoch: progress.epoch,
      });
      if (error.record.type === 'HostLost') progress.note(`epoch ${progress.epoch} ended: ${error.message}`);
      progress.epoch += 1;
      progress.host = null;
    }
  }
}

/** Explains in the UI why a reward is what it is. */
function accountOf({ produced, verdict }: Ending): string {
  const agent = produced ? [`the agent ended by ${produced.end.stop}`] : [];
  const files = produced ? [`changed ${produced.diff.files} files`] : [];
  const tests = verdict ? [`tests: ${verdictText(verdict)}`] : [];
  const flags = flagsOfRollout({
    diff: produced?.diff ?? null,
    verdict: verdict ?? null,
    stop: produced?.end.stop ?? null,
    ...(produced?.end.network !== undefined && { network: produced.end.network }),
    ...(produced?.stepFlags !== undefined && { stepFlags: produced.stepFlags }),
  }).map(({ trick }) => trick);
  const suspect = flags.length > 0 ? [`flags: ${flags.join(', ')}`] : [];
  const steps = produced?.steps?.map(({ name, reward }) => `${name} ${reward}`) ?? [];
  const rewards = steps.length > 0 ? [`steps: ${steps.join(', ')}`] : [];
  return [...agent, ...files, ...rewards, ...tests, ...suspect].join('; ');
}

function toResult({ input, progress, meter }: Basis, task: string, ending: Ending): RolloutResult {
  const { produced, resolved } = ending;
  return {
    rollout: workflowInfo().firstExecutionRunId,
    workflowId: workflowInfo().workflowId,
    task: resolved?.task.id ?? task,
    agent: input.agent,
    ...(progress.agentVersion !== undefined && { agentVersion: progress.agentVersion }),
    ...(input.agentOptions !== undefined && { agentOptions: input.agentOptions }),
    ...(input.offlineTests && { offlineTests: input.offlineTests }),
    outcome: ending.outcome,
    reward: ending.reward ?? null,
    stop: produced?.end.stop ?? null,
    failure: ending.failure ?? null,
    trace: produced?.trace ?? null,
    diff: produced?.diff ?? null,
    ...(produced?.snapshot !== undefined && { snapshot: produced.snapshot }),
    verdict: ending.verdict ?? null,
    ...(produced?.steps !== undefined && { steps: produced.steps }),
    ...(produced?.stepFlags !== undefined && { stepFlags: produced.stepFlags }),
    agentLog: produced?.end.log ?? null,
    ...(produced?.answer !== undefined && { answer: produced.answer }),
    ...(produced?.end.network !== undefined && { network: produced.end.network }),
    bundle: resolved?.task.bundle ?? null,
    epochs: progress.epoch,
    ...(progress.adoptions > 0 && { adoptions: progress.adoptions }),
    ...(progress.notes.length > 0 && { notes: progress.notes }),
    stageSeconds: progress.seconds,
    cost: meter.read(),
  };
}
