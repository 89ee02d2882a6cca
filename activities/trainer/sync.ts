import { log } from '@temporalio/activity';
import type { Engine } from '../../infra/engine/engine.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { policyName, shortKey } from '../../workflows/contracts/ids.ts';
import { joinAtBoundary } from '../boundary.ts';
import type { SyncWeights, TrainerActivities } from '../interfaces/trainer.ts';
import type { RunDependencies, TrainerContext, TrainerDependencies } from './dependencies.ts';
import { modelAt, onLiveModel } from './model.ts';
import { provenGap } from './probe.ts';

/** Publishes a version to every engine replica, or to those that came back without it, and proves that each serves it. */
export function createSync(
  dependencies: TrainerDependencies,
): Pick<TrainerActivities, 'syncWeights' | 'restoreWeights'> {
  const sync = async (own: RunDependencies, input: SyncWeights, signal: AbortSignal): Promise<number> => {
    const journal = await openJournal(dependencies.journals, input.runKey);
    return onLiveModel(journal, () => publishAndProve({ ...dependencies, ...own, journal, signal }, input));
  };
  return {
    syncWeights: (input) =>
      joinAtBoundary(async (signal) => {
        const own = await dependencies.ofRun(input);
        return { replicas: own.engines.length, maxLogprobGap: await sync(own, input, signal) };
      }),
    restoreWeights: (input) =>
      joinAtBoundary(async (signal) => {
        const own = await dependencies.ofRun(input);
        const lacking = await enginesWithout(input.version, own.engines, logUnavailable, signal);
        if (lacking.length > 0) await sync({ ...own, engines: lacking }, input, signal);
        return { restored: lacking.map(({ url }) => url) };
      }),
  };
}

/** Returns the engines that answer and serve another version. An engine that does not answer is reported to `onUnavailable` only. */
export async function enginesWithout(
  version: number,
  engines: readonly Engine[],
  onUnavailable: (engine: Engine, reason: unknown) => void,
  signal: AbortSignal,
): Promise<readonly Engine[]> {
  const healths = await Promise.allSettled(engines.map((engine) => engine.health(signal)));
  signal.throwIfAborted();
  return engines.filter((engine, index) => {
    const health = healths[index];
    if (health?.status === 'fulfilled') return health.value.ready && health.value.version !== version;
    onUnavailable(engine, health?.reason);
    return false;
  });
}

const logUnavailable = ({ url }: Engine, reason: unknown): void =>
  log.warn('an engine does not answer and cannot get its weights yet', { engine: url, error: String(reason) });

export async function publishAndProve(
  context: TrainerContext,
  { runKey, version, lastUpdate, training }: SyncWeights,
): Promise<number> {
  const { trainer, engines, journal, signal, publish: method } = context;
  const modelId = await modelAt(context, { step: version, lastUpdate }, training);
  const name = policyName(runKey, version);
  const path = await trainer.saveForSampler(modelId, name, await journal.nextSequence(modelId), signal);
  const keep = await context.pinnedVersions();
  const others = [...(await context.usedPolicies())].map(shortKey);
  const published = await Promise.allSettled(
    engines.map((engine) => engine.publish({ version, name, path, method, keep, others }, signal)),
  );
  // A failure is thrown only now: a retry must not meet a publication of this try that is still under way.
  for (const result of published) if (result.status === 'rejected') throw result.reason;
  const forward = async (data: readonly Datum[]) => {
    const sequence = await journal.nextSequence(modelId);
    const request = { modelId, sequence, data, loss: 'cross_entropy', forwardOnly: true } as const;
    return (await trainer.forwardBackward(request, signal)).logprobs;
  };
  return provenGap(engines, version, forward, signal);
}
