import type { Model } from '../../infra/kits/chat-tokens/index.ts';
import { openModel } from '../../infra/open-model.ts';
import type { Store } from '../../infra/store/store.ts';
import { createDemonstrations } from '../../infra/tasks/generated/demonstrations.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import type { DemonstrationRequest, TrainerDependencies } from './dependencies.ts';
import { recordedExamples } from './recorded.ts';

/** Tokens of a conversation, and how much each counts when it is learnt: 0 where it isn't the policy's. */
export interface Example {
  readonly tokens: readonly number[];
  readonly emphasis: readonly number[];
}

/** Each warm-up step has examples of its own, weighted by their emphasis; the weights of a step sum to 1. */
export function demonstrationsOf(
  modelDir: string,
  store: Pick<Store, 'getJson'>,
): TrainerDependencies['demonstrations'] {
  const recorded = recordedExamples(store);
  let model: Promise<Model> | null = null;

  async function exampleOf({
    tasks,
    seed,
    rightShare,
    traces,
  }: DemonstrationRequest): Promise<(index: number) => Example> {
    if (traces !== null) return recorded(traces);
    model ??= openModel(modelDir);
    return createDemonstrations({ model: await model, tasks, seed, rightShare });
  }

  return async (request): Promise<readonly Datum[]> => {
    const { step, count } = request;
    const example = await exampleOf(request);
    const examples = Array.from({ length: count }, (_, index) => example(step * count + index));
    const total = examples.reduce((sum, { emphasis }) => sum + emphasis.reduce((a, b) => a + b, 0), 0);
    return examples.map(({ tokens, emphasis }) => ({
      tokens: tokens.slice(0, -1),
      targets: tokens.slice(1),
      weights: emphasis.slice(1).map((weight) => weight / total),
    }));
  };
}
