import { loadModel, type Model } from '../../infra/gateway/rendering/model.ts';
import { createDemonstrations } from '../../infra/tasks/demonstrations.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import type { DemonstrationRequest, TrainerDependencies } from './dependencies.ts';

/** Demonstrations as data: each warm-up step has examples of its own, weighted by their emphasis; the weights of a step sum to 1. */
export function demonstrationsOf(modelDir: string): TrainerDependencies['demonstrations'] {
  let model: Promise<Model> | null = null;
  return async ({ tasks, seed, step, count, rightShare }: DemonstrationRequest): Promise<readonly Datum[]> => {
    model ??= loadModel(modelDir);
    const demonstrate = createDemonstrations({ model: await model, tasks, seed, rightShare });
    const examples = Array.from({ length: count }, (_, index) => demonstrate(step * count + index));
    const total = examples.reduce((sum, { emphasis }) => sum + emphasis.reduce((a, b) => a + b, 0), 0);
    return examples.map(({ tokens, emphasis }) => ({
      tokens: tokens.slice(0, -1),
      targets: tokens.slice(1),
      weights: emphasis.slice(1).map((weight) => weight / total),
    }));
  };
}
