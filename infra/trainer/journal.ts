import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { writeOnce } from '../store/files.ts';

/**
 * What the trainer worker knows of a run's model, on disk before each effect: so that an attempt after any crash repeats
 * the same request under the same sequence id, or rolls back to a checkpoint and replays.
 */
const update = z.strictObject({
  /** Blob of the data exactly as they were sent. */
  data: z.string(),
  /** Intent: where and under which ids the two requests are (to be) made. */
  modelId: z.string(),
  forwardSequence: z.number(),
  optimSequence: z.number(),
  /** How many datums each forward_backward takes; absent: one takes all. */
  sizes: z.array(z.number()).optional(),
  learningRate: z.number(),
  /** Digest of the batch that was asked for. */
  batch: z.string(),
  /** Null until the update is known to be done. */
  metrics: z.nullable(z.record(z.string(), z.number())),
});
export type JournaledUpdate = z.output<typeof update>;

const state = z.strictObject({
  /** The live model; null before the first, and once the server has lost it. */
  modelId: z.nullable(z.string()),
  /** Policy version 0, frozen: what a KL penalty refers to. */
  referenceId: z.nullable(z.string()),
  /** Last sequence id given out for each model that may be loaded. */
  sequences: z.record(z.string(), z.number()),
  /** The step whose result the live model holds. */
  step: z.number(),
  warmUpSteps: z.number(),
  prepared: z.boolean(),
  prepareMetrics: z.record(z.string(), z.number()),
  /** Step → path of the trainer's checkpoint, with optimizer state. */
  checkpoints: z.record(z.string(), z.string()),
  updates: z.record(z.string(), update),
});
export type TrainerState = z.output<typeof state>;

export interface TrainerJournal {
  readonly state: TrainerState;
  /** Durable before it returns. */
  write(change: Partial<TrainerState>): Promise<void>;
  /** The first of `count` (default 1) sequence ids in a row that were never given out for this model; durable before it returns. */
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
      `expected a run key of letters, digits, '.', '_', '-', got ${JSON.stringify(runKey)}`,
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

/** The keys of the runs that have a journal here. */
export async function journaledRuns(root: string): Promise<readonly string[]> {
  const names = await readdir(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new TemperFailure('StoreUnavailable', `can't list the trainer's journals in ${root}: ${error.message}`, {
      cause: error,
    });
  });
  return names.filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length));
}

async function readState(path: string): Promise<TrainerState> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new TemperFailure('StoreUnavailable', `can't read the trainer's journal ${path}: ${error.message}`, {
      cause: error,
    });
  });
  if (text === null) return fresh;
  const parsed = state.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new TemperFailure('StoreUnavailable', `the trainer's journal ${path} is not readable: ${parsed.error.message}`);
}
