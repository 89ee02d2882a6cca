import type { Engine } from '../../infra/engine/engine.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { policyName } from '../../workflows/contracts/ids.ts';
import { atBoundary } from '../boundary.ts';
import type { SyncWeights, TrainerActivities } from '../interfaces.ts';
import type { TrainerDependencies } from './dependencies.ts';
import { modelAt, onLiveModel } from './model.ts';

/** Token ids that every vocabulary has: their logprobs tell whether engine and trainer hold the same weights. */
const probe: readonly number[] = [5, 6, 7, 8, 9, 10, 11, 12];
/** Two float32 implementations differ by less; stale weights by far more. */
const largestGap = 1e-2;

/** Publishes a version to every engine replica, and proves on each that it took. */
export function createSync(dependencies: TrainerDependencies): Pick<TrainerActivities, 'syncWeights'> {
  return {
    syncWeights: (input) =>
      atBoundary(async (signal) => {
        const journal = await openJournal(dependencies.journalRoot, input.runKey);
        return onLiveModel(journal, () => sync(dependencies, journal, input, signal));
      }),
  };
}

async function sync(
  dependencies: TrainerDependencies,
  journal: Awaited<ReturnType<typeof openJournal>>,
  { runKey, version, training }: SyncWeights,
  signal: AbortSignal,
): Promise<{ readonly replicas: number; readonly maxLogprobGap: number }> {
  const { trainer, engines, publish: method } = dependencies;
  const modelId = await modelAt(dependencies, journal, version, training, signal);
  const name = policyName(runKey, version);
  const path = await trainer.saveForSampler(modelId, name, await journal.nextSequence(modelId), signal);
  const expected = await trainerLogprobs(dependencies, modelId, await journal.nextSequence(modelId), signal);
  const gaps = await Promise.all(
    engines.map(async (engine) => {
      await engine.publish({ version, name, path, method }, signal);
      return provenGap(engine, version, expected, signal);
    }),
  );
  return { replicas: engines.length, maxLogprobGap: Math.max(0, ...gaps) };
}

async function trainerLogprobs(
  { trainer }: TrainerDependencies,
  modelId: string,
  sequence: number,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const tokens = probe.slice(0, -1);
  const datum = { tokens, targets: probe.slice(1), weights: tokens.map(() => 1) };
  const request = { modelId, sequence, data: [datum], loss: 'cross_entropy', forwardOnly: true } as const;
  const { logprobs } = await trainer.forwardBackward(request, signal);
  return logprobs[0] ?? [];
}

async function provenGap(
  engine: Engine,
  version: number,
  expected: readonly number[],
  signal: AbortSignal,
): Promise<number> {
  const scored = await engine.score(probe, signal);
  const gap = Math.max(...expected.map((value, index) => Math.abs(value - (scored[index] ?? Number.NaN))));
  if (gap <= largestGap) return gap;
  throw new TemperFailure(
    'EngineUnavailable',
    `engine ${engine.url}: expected version ${version} with the trainer's logprobs, got a gap of ${gap}; it took the weights in part or not at all`,
  );
}
