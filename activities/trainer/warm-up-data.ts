import type { Model } from '../../infra/kits/chat-tokens/index.ts';
import { openModel } from '../../infra/open-model.ts';
import { readTrace } from '../../infra/report/read-trace.ts';
import type { Store } from '../../infra/store/store.ts';
import { createDemonstrations } from '../../infra/tasks/generated/demonstrations.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { DemonstrationRequest, TrainerDependencies } from './dependencies.ts';

/** The tokens of a conversation, and how much each of them counts in learning: 0 where the policy did not write it. */
interface Example {
  readonly tokens: readonly number[];
  readonly emphasis: readonly number[];
}

/** Creates the source of warm-up data. Each step has its own examples; the weights of their tokens sum to 1 per step. */
export function createWarmUpData(
  modelDir: string,
  store: Pick<Store, 'getJson'>,
): TrainerDependencies['demonstrations'] {
  const recorded = createRecordedExamples(store);
  let model: Promise<Model> | null = null;

  async function exampleOf(request: DemonstrationRequest): Promise<(index: number) => Example> {
    const { tasks, seed, rightShare, traces } = request;
    if (traces !== null) return recorded(traces);
    model ??= openModel(modelDir);
    return createDemonstrations({ model: await model, tasks, seed, rightShare });
  }

  return async (request) => {
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

/** Creates a reader of traces' segments as examples, repeated in the order given. Every trained token counts the same. */
function createRecordedExamples(store: Pick<Store, 'getJson'>) {
  let last: { readonly key: string; readonly examples: Promise<readonly Example[]> } | null = null;
  return async (traces: readonly string[]): Promise<(index: number) => Example> => {
    const key = traces.join();
    if (last?.key !== key) last = { key, examples: readExamples(store, traces) };
    const examples = await last.examples.catch((error) => {
      last = null;
      throw error;
    });
    return (index) => examples[index % examples.length] as Example;
  };
}

async function readExamples(store: Pick<Store, 'getJson'>, traces: readonly string[]): Promise<readonly Example[]> {
  const read = await Promise.all(traces.map((digest) => readTrace(store, digest)));
  for (const { session, turns } of read) {
    const upstream = turns.find((turn) => turn.upstream !== undefined)?.upstream;
    if (upstream === undefined) continue;
    throw new TemperFailure(
      'InvalidInput',
      `warmUp.traces: expected traces of the policy, got the trace of ${session}, which the upstream model ${upstream.model} sampled: upstream models return no token ids to train on; leave this trace out`,
    );
  }
  const examples = read
    .flatMap(({ segments }) => segments)
    .filter(({ mask }) => mask.includes(1))
    .map(({ tokens, mask }) => ({ tokens, emphasis: mask }));
  if (examples.length > 0) return examples;
  throw new TemperFailure(
    'InvalidInput',
    `warmUp.traces: expected traces with tokens of a policy, got none in ${traces.length}`,
  );
}
