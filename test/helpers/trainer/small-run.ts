import { join } from 'node:path';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { onLiveModel } from '../../../activities/trainer/model.ts';
import { publishAndProve } from '../../../activities/trainer/sync.ts';
import { skipUpdate, updatePolicy } from '../../../activities/trainer/update.ts';
import type { Engine } from '../../../infra/engine/engine.ts';
import { createDirectory } from '../../../infra/store/directory.ts';
import { openJournal, type TrainerJournal } from '../../../infra/trainer/journal.ts';
import type { Trainer } from '../../../infra/trainer/trainer.ts';
import { normalise } from '../../../workflows/algorithms/normalise.ts';
import type { Batch } from '../../../workflows/contracts/batch.ts';
import { type RunRequest, training as trainingInput } from '../../../workflows/contracts/run.ts';
import { createFileStore } from '../store/file-store.ts';

export interface SmallRunOptions {
  /** The directory of the run's store and journal. */
  readonly root: string;
  readonly trainer: Trainer;
  readonly engines?: readonly Engine[];
  readonly training?: RunRequest['training'];
  readonly steps?: number;
  readonly requestTokens: number;
}

/** The work of a trainer worker for a run, without its workflow: each call is one activity attempt of a new process. */
export interface SmallRun {
  /** Replaced when the run's worker is started with another client. */
  trainer: Trainer;
  requestTokens: number;
  journal(): Promise<TrainerJournal>;
  /** Makes version 0 without a warm-up. */
  prepare(): Promise<void>;
  /** Makes the update of a step on these conversations, after the step `lastUpdate`; default: the one before. */
  update(step: number, conversations: readonly Conversation[], lastUpdate?: number): Promise<Record<string, number>>;
  skip(step: number): Promise<void>;
  /** Publishes a version, whose last update is that of the step `lastUpdate`; default: its own. */
  publish(version: number, lastUpdate?: number): Promise<void>;
}

/** Token ids, of which the second half is trained. */
export type Conversation = readonly number[];

const pool = 'default';
export const runKey = '01890000-0000-7000-8000-0123456789ab';

export function createSmallRun(options: SmallRunOptions): SmallRun {
  const { root, engines = [], steps = 10 } = options;
  const training = trainingInput.parse({ loss: 'importance_sampling', learningRate: 0.01, ...options.training });
  const journals = createDirectory(root);
  const store = createFileStore(join(root, 'store'));
  const signal = new AbortController().signal;
  const journal = () => openJournal(journals, runKey);
  const context = async () => ({
    trainer: run.trainer,
    requestTokens: run.requestTokens,
    store,
    journal: await journal(),
    journals,
    signal,
    engines,
    publish: 'reload' as const,
    usedPolicies: async () => new Set([runKey]),
    pinnedVersions: async () => [],
    demonstrations: async () => [],
  });
  const run: SmallRun = {
    trainer: options.trainer,
    requestTokens: options.requestTokens,
    journal,
    async prepare() {
      const own = await journal();
      const modelId = await run.trainer.createModel({ loraRank: training.loraRank, seed: 1 });
      const path = await run.trainer.save(modelId, `${runKey.slice(-12)}-v0`, await own.nextSequence(modelId));
      await own.write({ prepared: true, checkpoints: { 0: path }, step: 0 });
    },
    async update(step, conversations, lastUpdate = step - 1) {
      const batch = batchOf(step, conversations);
      const stored = await store.putJson(batch);
      const advantages = await store.putJson({ batch: stored.digest, ...normalise(batch, training) });
      const own = await context();
      const scheduled = { update: step, mostUpdates: steps };
      const input = { runKey, pool, step, ...scheduled, batch: stored, advantages, training, lastUpdate };
      const { metrics } = await inActivity(() => onLiveModel(own.journal, () => updatePolicy(own, input)));
      return metrics;
    },
    async skip(step) {
      await skipUpdate(await journal(), step);
    },
    async publish(version, lastUpdate = version) {
      const own = await context();
      const input = { runKey, pool, version, training, lastUpdate };
      await inActivity(() => onLiveModel(own.journal, () => publishAndProve(own, input)));
    },
  };
  return run;
}

function batchOf(step: number, conversations: readonly Conversation[]): Batch {
  return {
    runKey,
    step,
    rollouts: conversations.map((_, index) => ({ rollout: `r${index}`, group: 0, reward: index % 2 })),
    segments: conversations.map((tokens, rollout) => {
      const mask = tokens.map((_, position): 0 | 1 => (position < tokens.length / 2 ? 0 : 1));
      const logprobs = mask.map((trained) => (trained === 1 ? -2 : 0));
      return { rollout, segment: { tokens, mask, logprobs, versions: [] } };
    }),
  };
}

/** Runs work with the log of an activity. */
function inActivity<Result>(work: () => Promise<Result>): Promise<Result> {
  const log = { info: () => {}, warn: () => {} };
  return asyncLocalStorage.run({ log } as unknown as Context, work);
}
