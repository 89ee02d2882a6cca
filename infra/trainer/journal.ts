import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { writeOnce } from '../store/files.ts';

// The trainer worker's knowledge of a run's model, on disk before each effect. After a crash, a retry either repeats the same
// request under the same sequence id, or loads a checkpoint and replays. trainer.ts shows the whole chain.

const update = z.strictObject({
  /** Blob of the data, exactly as sent. */
  data: z.string(),
  /** The model and the sequence ids of the requests, recorded before they are sent. */
  modelId: z.string(),
  forwardSequence: z.number(),
  optimSequence: z.number(),
  /** The number of datums of each forward_backward; omitted when one takes all. */
  sizes: z.array(z.number()).optional(),
  learningRate: z.number(),
  /** Digest of the batch of this step. */
  batch: z.string(),
  /** Null until the update is known to be done. */
  metrics: z.nullable(z.record(z.string(), z.number())),
});
export type JournaledUpdate = z.output<typeof update>;

const state = z.strictObject({
  /** The live model; null before the first, and once the server has lost it. */
  modelId: z.nullable(z.string()),
  /** Policy version 0, frozen: the reference of a KL penalty. */
  referenceId: z.nullable(z.string()),
  /** The last sequence id given out, for each model that may be loaded. */
  sequences: z.record(z.string(), z.number()),
  /** The step whose result the live model holds. */
  step: z.number(),
  warmUpSteps: z.number(),
  prepared: z.boolean(),
  prepareMetrics: z.record(z.string(), z.number()),
  /** The path of the trainer's checkpoint with optimizer state, by step. */
  checkpoints: z.record(z.string(), z.string()),
  updates: z.record(z.string(), update),
});
export type TrainerState = z.output<typeof state>;

export interface TrainerJournal {
  readonly state: TrainerState;
  /** Merges a change; durable before it returns. */
  write(change: Partial<TrainerState>): Promise<void>;
  /**
   * Returns the first of `count` consecutive sequence ids that were never given out for this model; durable before it returns.
   */
  nextSequence(modelId: string, count?: number): Promise<number>;
}

const fresh: TrainerState = {
  modelId: null,
  referenceId: null,
  sequences: {},
  step: 0,
  warmUpSteps: 0,
  prepared: false,
  prepareMetrics: {},
  checkpoints: {},
  updates: {},
};

export async function openJournal(root: string, runKey: string): Promise<TrainerJournal> {
  if (!/^[a-zA-Z0-9._-]{1,100}$/.test(runKey)) {
    throw new TemperFailure(
      'InvalidInput',
      `invalid run key ${JSON.stringify(runKey)}: use letters, digits, '.', '_' and '-'`,
    );
  }
  const path = join(root, `${runKey}.json`);
  let current = await readState(path);

  async function write(change: Partial<TrainerState>): Promise<void> {
    current = { ...current, ...change };
    await writeOnce(path, JSON.stringify(current));
  }

  return {
    get state() {
      return current;
    },
    write,
    nextSequence: async (modelId, count = 1) => {
      const last = current.sequences[modelId] ?? 0;
      await write({ sequences: { ...current.sequences, [modelId]: last + count } });
      return last + 1;
    },
  };
}

/** Returns the keys of the runs that have a journal in this directory. */
export async function journaledRuns(root: string): Promise<readonly string[]> {
  const names = await readdir(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new TemperFailure('StoreUnavailable', `cannot list the trainer's journals in ${root}: ${error.message}`, {
      cause: error,
    });
  });
  return names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
}

async function readState(path: string): Promise<TrainerState> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new TemperFailure('StoreUnavailable', `cannot read the trainer's journal ${path}: ${error.message}`, {
      cause: error,
    });
  });
  if (text === null) return fresh;
  const parsed = state.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new TemperFailure('StoreUnavailable', `unreadable trainer's journal ${path}: ${parsed.error.message}`);
}
