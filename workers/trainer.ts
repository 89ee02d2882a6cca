import type { Client } from '@temporalio/client';
import type { TrainerActivities } from '../activities/interfaces/trainer.ts';
import type { TrainerDependencies } from '../activities/trainer/dependencies.ts';
import { createPreparation } from '../activities/trainer/prepare.ts';
import { createSync } from '../activities/trainer/sync.ts';
import { createUpdate } from '../activities/trainer/update.ts';
import { createEngines } from '../infra/engine/index.ts';
import { createEnginePools } from '../infra/engine/pools.ts';
import type { Config } from '../infra/settings/config.ts';
import type { Objects } from '../infra/store/objects.ts';
import type { Store } from '../infra/store/store.ts';
import { evaluatedRuns, openRuns } from '../infra/temporal/runs.ts';
import { followsServer, requireNamespace } from '../infra/temporal/stack-namespace.ts';
import { trainers } from '../infra/trainer/index.ts';
import { createSessionRecord } from '../infra/trainer/journal.ts';
import type { Trainer } from '../infra/trainer/trainer.ts';
import { defaultPool } from '../workflows/contracts/policy.ts';
import { trainerQueue } from '../workflows/contracts/queues.ts';
import { searchAttributes } from '../workflows/contracts/search-attributes.ts';
import { openState } from './open-state.ts';
import { runWorkers } from './process.ts';

/** The number of runs whose trainers may be waited for at once. A run has one activity here at a time. */
const runsAtOnce = 32;

/** Runs the trainer worker: updates and weight syncs. */
export function runTrainer(config: Config, signal: AbortSignal): Promise<void> {
  return runWorkers({ config, part: 'trainer' }, signal, async ({ client }) => {
    const state = await openState(config);
    await requireNamespace({ ...state, client }, { mayMove: followsServer(config.store) });
    const { objects, blobs: store } = state;
    const dependencies: TrainerDependencies = {
      ofRun: createRunDependencies(config, objects),
      store,
      journals: objects,
      requestTokens: config.trainer.requestTokens,
      pinnedVersions: () => pinnedVersions(client),
      usedPolicies: async () =>
        new Set([...(await openRuns(client)).map(({ runKey }) => runKey), ...(await evaluatedRuns(client))]),
      demonstrations: createDemonstrations(config.modelDir, store),
    };
    const activities: TrainerActivities = {
      ...createPreparation(dependencies),
      ...createUpdate(dependencies),
      ...createSync(dependencies),
    };
    return [{ taskQueue: trainerQueue, activities, maxConcurrentActivityTaskExecutions: runsAtOnce }];
  });
}

/** Loads tokenizer, templates and task sets with the first warm-up, since they are half of what this worker would load. */
function createDemonstrations(modelDir: string, store: Store): TrainerDependencies['demonstrations'] {
  let made: Promise<TrainerDependencies['demonstrations']> | undefined;
  return async (request) => {
    made ??= import('../activities/trainer/warm-up-data.ts').then((one) => one.createWarmUpData(modelDir, store));
    return (await made)(request);
  };
}

/** Gives each run a client of its trainer, and engines that serve its policy. A client is kept for the run's later activities. */
function createRunDependencies(config: Config, objects: Objects): TrainerDependencies['ofRun'] {
  const pools = createEnginePools(config.pools, config.pool, config.env);
  const clients = new Map<string, Trainer>();
  return async ({ runKey, pool: name = defaultPool }) => {
    const pool = await pools.find(name);
    const { url, model, reduction, apiKey } = pool.trainer;
    const known = clients.get(runKey);
    const trainer =
      known?.url === url
        ? known
        : trainers.tinker({
            url,
            baseModel: model,
            reduction,
            apiKey,
            checkpointsDir: config.checkpoints,
            engineCheckpointsDir: config.engineCheckpoints,
            sessionRecord: createSessionRecord(objects, runKey),
          });
    if (known !== trainer) known?.close();
    clients.set(runKey, trainer);
    return { trainer, engines: createEngines(pool, runKey), publish: pool.publish };
  };
}

/** The policy versions that running evaluation sweeps evaluate. */
async function pinnedVersions(client: Client): Promise<readonly number[]> {
  const versions = new Set<number>();
  for await (const { typedSearchAttributes } of client.workflow.list({
    query: 'WorkflowType="evaluationSweep" AND ExecutionStatus="Running"',
  })) {
    const version = typedSearchAttributes.get(searchAttributes.policyVersion);
    if (version !== undefined) versions.add(version);
  }
  return [...versions];
}
