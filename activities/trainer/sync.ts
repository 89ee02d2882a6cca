import { log } from '@temporalio/activity';
import type { Engine } from '../../infra/engine/engine.ts';
import { openJournal, type TrainerJournal } from '../../infra/trainer/journal.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import { atBoundary } from '../boundary.ts';
import type { SyncWeights, TrainerActivities } from '../interfaces.ts';
import type { TrainerDependencies } from './dependencies.ts';
import { enginesWithout } from './engines-without.ts';
import { modelAt, onLiveModel } from './model.ts';
import { provenGap } from './probe.ts';

/** Publishes a version to every engine replica, or to those that came back without it, and proves on each that it took. */
export function createSync(
  dependencies: TrainerDependencies,
): Pick<TrainerActivities, 'syncWeights' | 'restoreWeights'> {
  const sync = async (engines: readonly Engine[], input: SyncWeights, signal: AbortSignal): Promise<number> => {
    const journal = await openJournal(dependencies.journalRoot, input.runKey);
    return onLiveModel(journal, () => publishAndProve(dependencies, engines, journal, input, signal));
  };
  const { engines } = dependencies;
  return {
    syncWeights: (input) =>
      atBoundary(async (signal) => ({
        replicas: engines.length,
        maxLogprobGap: await sync(engines, input, signal),
      })),
    restoreWeights: (input) =>
      atBoundary(async (signal) => {
        const lacking = await enginesWithout(input.version, engines, logAway, signal);
        if (lacking.length > 0) await sync(lacking, input, signal);
        return { restored: lacking.map(({ url }) => url) };
      }),
  };
}

const logAway = ({ url }: Engine, reason: unknown): void =>
  log.warn('an engine is away and can not be given its weights yet', { engine: url, error: String(reason) });

async function publishAndProve(
  dependencies: TrainerDependencies,
  engines: readonly Engine[],
  journal: TrainerJournal,
  { runKey, version, training }: SyncWeights,
  signal: AbortSignal,
): Promise<number> {
  const { trainer, publish: method } = dependencies;
  const modelId = await modelAt(dependencies, journal, version, training, signal);
  const name = policyName(runKey, version);
  const path = await trainer.saveForSampler(modelId, name, await journal.nextSequence(modelId), signal);
  const keep = await dependencies.pinnedVersions();
  const published = await Promise.allSettled(
    engines.map((engine) => engine.publish({ version, name, path, method, keep }, signal)),
  );
  // Only now: a retry must not meet a publication of this attempt that is still under way.
  for (const result of published) if (result.status === 'rejected') throw result.reason;
  const forward = async (data: readonly Datum[]) => {
    const sequence = await journal.nextSequence(modelId);
    const request = { modelId, sequence, data, loss: 'cross_entropy', forwardOnly: true } as const;
    return (await trainer.forwardBackward(request, signal)).logprobs;
  };
  return provenGap(engines, version, forward, signal);
}
