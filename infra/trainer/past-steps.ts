import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Objects } from '../store/objects.ts';
import { storedJson } from '../store/stored-json.ts';

// The past steps of a run, 64 in each document. They are needed to replay a run from its beginning, and by a run that was reset
// to an early step. Retention keeps them with the journal, and with them the data of the updates.

const update = z.strictObject({
  /** Blob of the data, exactly as sent. */
  data: z.string(),
  /** The model and the sequence ids of the requests, recorded before they are sent. */
  modelId: z.string(),
  forwardSequence: z.number(),
  optimSequence: z.number(),
  /** The number of datums of each forward_backward. */
  sizes: z.array(z.number()),
  learningRate: z.number(),
  /** Digest of the batch of this step. */
  batch: z.string(),
  /** Null until the update is known to be done. */
  metrics: z.nullable(z.record(z.string(), z.number())),
});
export type JournaledUpdate = z.output<typeof update>;

/** The work done for steps: the data of each update, for a replay, and the trainer's checkpoints with optimizer state. */
export const journaledSteps = z.strictObject({
  /** The path of the checkpoint, by step. */
  checkpoints: z.record(z.string(), z.string()),
  updates: z.record(z.string(), update),
});
export type JournaledSteps = z.output<typeof journaledSteps>;

/** A journal's last steps. */
interface LastSteps extends JournaledSteps {
  /** The number of documents with past steps. */
  readonly past: number;
  readonly step: number;
}

/** The number of steps in a document. */
export const stepsTogether = 64;

/** The documents of past steps. The first has number 0. */
export interface PastSteps {
  read(number: number): Promise<JournaledSteps>;
  write(number: number, steps: JournaledSteps): Promise<void>;
}

export function createPastSteps(objects: Objects, folder: string): PastSteps {
  const keyOf = (number: number): string => `${folder}/steps-${number + 1}.json`;
  return {
    async read(number) {
      const found = await objects.get(keyOf(number));
      const where = `${objects.location}/${keyOf(number)}`;
      if (found === null) throw new TemperFailure('StoreUnavailable', `${where}: expected past steps, got no document`);
      const parsed = journaledSteps.safeParse(storedJson(where, found.bytes));
      if (parsed.success) return parsed.data;
      throw new TemperFailure('StoreUnavailable', `unreadable past steps ${where}: ${parsed.error.message}`);
    },
    async write(number, steps) {
      // A try that ended before it could replace the journal has written the same document.
      const found = await objects.get(keyOf(number));
      const bytes = new TextEncoder().encode(JSON.stringify(steps));
      if ((await objects.replace(keyOf(number), bytes, found?.version ?? null)) !== null) return;
      throw new TemperFailure(
        'StoreUnavailable',
        `another activity attempt writes ${keyOf(number)}; the stage is retried`,
      );
    },
  };
}

/**
 * Moves the oldest steps into a document when there are enough that no retry needs any more: a newer checkpoint exists, and
 * as many newer steps. The document is durable before the result replaces the journal.
 */
export async function withoutPast<State extends LastSteps>(state: State, past: PastSteps): Promise<State> {
  const last = (state.past + 1) * stepsTogether;
  const hasNewer = Object.keys(state.checkpoints).some((step) => Number(step) > last);
  if (!hasNewer || state.step < last + stepsTogether) return state;
  const isPast = (step: number): boolean => step > 0 && step <= last;
  await past.write(state.past, {
    checkpoints: pick(state.checkpoints, isPast),
    updates: pick(state.updates, isPast),
  });
  const stays = (step: number): boolean => !isPast(step);
  return {
    ...state,
    past: state.past + 1,
    checkpoints: pick(state.checkpoints, stays),
    updates: pick(state.updates, stays),
  };
}

/** Returns what is journaled of steps from `from` to `to`, and of step 0. */
export async function stepsOf(state: LastSteps, past: PastSteps, from: number, to: number): Promise<JournaledSteps> {
  let { checkpoints, updates } = state;
  for (let number = Math.max(0, documentOf(from)); number < state.past && number <= documentOf(to); number += 1) {
    const read = await past.read(number);
    checkpoints = { ...read.checkpoints, ...checkpoints };
    updates = { ...read.updates, ...updates };
  }
  const isWanted = (step: number): boolean => step === 0 || (step >= from && step <= to);
  return { checkpoints: pick(checkpoints, isWanted), updates: pick(updates, isWanted) };
}

/** Returns the highest of the steps up to `step` that `among` finds, in the journal and then in past steps; 0 for none. */
export async function lastIn(
  state: LastSteps,
  past: PastSteps,
  step: number,
  among: (steps: JournaledSteps) => readonly string[],
): Promise<number> {
  const last = (steps: JournaledSteps): number =>
    Math.max(
      0,
      ...among(steps)
        .map(Number)
        .filter((one) => one <= step),
    );
  const recent = step > state.past * stepsTogether ? last(state) : 0;
  if (recent > 0) return recent;
  for (let number = Math.min(state.past - 1, documentOf(step)); number >= 0; number -= 1) {
    const found = last(await past.read(number));
    if (found > 0) return found;
  }
  return 0;
}

const documentOf = (step: number): number => Math.floor((step - 1) / stepsTogether);

function pick<Value>(record: Readonly<Record<string, Value>>, isWanted: (step: number) => boolean) {
  return Object.fromEntries(Object.entries(record).filter(([step]) => isWanted(Number(step))));
}
