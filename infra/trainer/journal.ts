import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Objects } from '../store/objects.ts';
import { createRecords } from '../store/records.ts';
import { storedJson } from '../store/stored-json.ts';
import { createPastSteps, type JournaledSteps, journaledSteps, lastIn, stepsOf, withoutPast } from './past-steps.ts';

// The trainer worker's knowledge of a run's model, stored before each effect. After a crash, a retry either repeats the same
// request under the same sequence id, or loads a checkpoint and replays. trainer.ts shows the whole chain. Each write replaces
// the whole document, so that it holds the last steps only: older ones move into documents of their own (past-steps.ts).

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
  /** The last checkpoints within the warm-up, newest last. They are removed when it is done. */
  warmUpCheckpoints: z.array(z.strictObject({ step: z.number(), path: z.string() })),
  /** The limit of a request's tokens that the warm-up of the live model began with. */
  warmUpRequestTokens: z.number(),
  prepared: z.boolean(),
  prepareMetrics: z.record(z.string(), z.number()),
  /** The pool of the run. Absent until the run's model is created. */
  pool: z.string().optional(),
  /** The number of documents with past steps. */
  past: z.number(),
  // Of the last steps, and of step 0.
  ...journaledSteps.shape,
});
export type TrainerState = z.output<typeof state>;

export type { JournaledUpdate } from './past-steps.ts';

export interface TrainerJournal {
  readonly location: string;
  readonly state: TrainerState;
  /** Merges a change; durable before it returns. */
  write(change: Partial<TrainerState>): Promise<void>;
  /**
   * Returns the first of `count` consecutive sequence ids that were never given out for this model; durable before it returns.
   */
  nextSequence(modelId: string, count?: number): Promise<number>;
  /** Returns what is journaled of steps from `from` to `to`, and of step 0. */
  steps(from: number, to: number): Promise<JournaledSteps>;
  /** Returns the last step up to `step` of which a checkpoint is journaled; 0 if there is none. */
  lastCheckpoint(step: number): Promise<number>;
  /** Returns the last step up to `step` whose update is done; 0 if there is none. Steps without one leave the model unchanged. */
  lastUpdate(step: number): Promise<number>;
}

const fresh: TrainerState = {
  modelId: null,
  referenceId: null,
  sequences: {},
  step: 0,
  warmUpSteps: 0,
  warmUpCheckpoints: [],
  warmUpRequestTokens: 0,
  prepared: false,
  prepareMetrics: {},
  past: 0,
  checkpoints: {},
  updates: {},
};

const folder = 'trainer';

/**
 * Opens the journal of a run. An older activity attempt that still runs, perhaps in another worker, fails at its next write:
 * otherwise both could give out the same sequence id.
 */
export async function openJournal(objects: Objects, runKey: string): Promise<TrainerJournal> {
  if (!/^[a-zA-Z0-9._-]{1,100}$/.test(runKey)) {
    throw new TemperFailure(
      'InvalidInput',
      `invalid run key ${JSON.stringify(runKey)}: use letters, digits, '.', '_' and '-'`,
    );
  }
  const key = `${folder}/${runKey}.json`;
  const past = createPastSteps(objects, `${folder}/${runKey}`);
  const found = await objects.get(key);
  let version = found?.version ?? null;
  let current = found === null ? fresh : parseState(found.bytes, `${objects.location}/${key}`);

  async function write(change: Partial<TrainerState>): Promise<void> {
    const next = await withoutPast({ ...current, ...change }, past);
    const written = await objects.replace(key, new TextEncoder().encode(JSON.stringify(next)), version);
    if (written === null) {
      throw new TemperFailure(
        'StoreUnavailable',
        `another activity attempt has written the trainer's journal of run ${runKey} since this one read it; the stage is retried`,
      );
    }
    version = written;
    current = next;
  }

  return {
    location: `${objects.location}/${key}`,
    get state() {
      return current;
    },
    write,
    nextSequence: async (modelId, count = 1) => {
      const last = current.sequences[modelId] ?? 0;
      await write({ sequences: { ...current.sequences, [modelId]: last + count } });
      return last + 1;
    },
    steps: (from, to) => stepsOf(current, past, from, to),
    lastCheckpoint: (step) => lastIn(current, past, step, ({ checkpoints }) => Object.keys(checkpoints)),
    lastUpdate: (step) =>
      lastIn(current, past, step, ({ updates }) => Object.keys(updates).filter((one) => updates[one]?.metrics)),
  };
}

/** The name of the record of a session, beside a run's past steps. */
const sessionName = 'session';

/** Returns the keys of the runs that have a journal. */
export async function journaledRuns(objects: Objects): Promise<readonly string[]> {
  const runs: string[] = [];
  for await (const { key } of objects.list(folder)) {
    const [, name] = /^trainer\/([^/]+)\.json$/.exec(key) ?? [];
    if (name !== undefined) runs.push(name);
  }
  return runs;
}

/** A record of a run's session with its trainer, so that its models outlive the worker. */
export interface SessionRecord {
  find(): Promise<unknown>;
  /** Replaces the record by what `change` makes of it; null stands for none. It may be called again. */
  update(change: (session: unknown) => unknown): Promise<void>;
}

export function createSessionRecord(objects: Objects, runKey: string): SessionRecord {
  const records = createRecords(objects, folder);
  return {
    find: () => records.find(runKey, sessionName),
    update: (change) => records.update(runKey, sessionName, change),
  };
}

function parseState(bytes: Uint8Array, where: string): TrainerState {
  const parsed = state.safeParse(storedJson(where, bytes));
  if (parsed.success) return parsed.data;
  throw new TemperFailure('StoreUnavailable', `unreadable trainer's journal ${where}: ${parsed.error.message}`);
}
