import type { Client } from '@temporalio/client';
import type { TrainerActivities } from '../activities/interfaces/trainer.ts';
import type { TrainerDependencies } from '../activities/trainer/dependencies.ts';
import { createPreparation } from '../activities/trainer/prepare.ts';
import { createSync } from '../activities/trainer/sync.ts';
import { createUpdate } from '../activities/trainer/update.ts';
import { createWarmUpData } from '../activities/trainer/warm-up-data.ts';
import type { Config } from '../infra/config.ts';
import { createEngines } from '../infra/engine/index.ts';
import { trainers } from '../infra/trainer/index.ts';
import { createSessionRecord } from '../infra/trainer/journal.ts';
import { trainerQueue } from '../workflows/contracts/queues.ts';
import { searchAttributes } from '../workflows/contracts/search-attributes.ts';
import { openState } from './open-state.ts';
import { runWorkers } from './process.ts';

/** Runs the trainer worker: updates and weight syncs. */
export function runTrainer(config: Config, signal: AbortSignal): Promise<void> {
  return runWorkers(config, 'trainer', signal, async ({ client }) => {
    const { objects, blobs: store, common } = await openState(config);
    const dependencies: TrainerDependencies = {
      trainer: trainers.tinker({
        url: config.trainer.url,
        baseModel: config.trainer.model,
        reduction: config.trainer.reduction,
        apiKey: config.trainer.apiKey,
        checkpointsDir: config.checkpoints,
        engineCheckpointsDir: config.engineCheckpoints,
        sessionRecord: createSessionRecord(common),
      }),
      engines: createEngines({ ...config.engine, method: config.publish }),
      store,
      journals: objects,
      requestTokens: config.trainer.requestTokens,
      publish: config.publish,
      pinnedVersions: () => pinnedVersions(client),
      demonstrations: createWarmUpData(config.modelDir, store),
    };
    const activities: TrainerActivities = {
      ...createPreparation(dependencies),
      ...createUpdate(dependencies),
      ...createSync(dependencies),
    };
    return [{ taskQueue: trainerQueue, activities, maxConcurrentActivityTaskExecutions: 4 }];
  });
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
