/**
 * Measures sampled tokens per second and the time of a GRPO step (8 prompts x 8 samples x 40 new tokens, then one gradient
 * step) of the embedded policy.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PolicyCore } from '../../infra/kits/embedded-policy/core.ts';
import { createPolicyCore } from '../../infra/kits/embedded-policy/create-policy-core.ts';
import { type Datum, defaultAdamParams } from '../../infra/kits/embedded-policy/trainer-core.ts';

const modelConfig = {
  model_type: 'temper-tiny',
  vocab_size: 384,
  hidden_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  intermediate_size: 384,
  max_position_embeddings: 512,
  seed: 1,
};
const shape = { prompts: 8, samples: 8, promptTokens: 56, newTokens: 40, rounds: 5, trainLength: 96 } as const;

interface Figures {
  readonly sampleBatch1TokensPerS: number;
  readonly sampleBatch64TokensPerS: number;
  readonly grpoStepMs: number;
  readonly grpoSampleMs: number;
  readonly grpoTrainMs: number;
  readonly train6144TokensMs: number;
}

interface Sample {
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
}

async function measure(modelDir: string): Promise<Figures> {
  const core = await createPolicyCore({ modelDir });
  await core.trainer.createModel('bench', { baseDir: modelDir });
  const steps = [];
  await grpoStep(core, modelDir); // compiles everything
  for (let round = 0; round < shape.rounds; round++) steps.push(await grpoStep(core, modelDir));
  const best = steps.reduce((a, b) => (b.sampleMs + b.trainMs < a.sampleMs + a.trainMs ? b : a));
  const figures = {
    sampleBatch1TokensPerS: await samplingRate(core, 1),
    sampleBatch64TokensPerS: await samplingRate(core, 64),
    grpoStepMs: best.sampleMs + best.trainMs,
    grpoSampleMs: best.sampleMs,
    grpoTrainMs: best.trainMs,
    train6144TokensMs: await trainMs(core),
  };
  await core.close();
  return figures;
}

let requests = 0;

async function sample(core: PolicyCore, prompt: readonly number[], maxTokens: number): Promise<Sample> {
  requests += 1;
  const [tokens, logprobs]: [number[], number[]] = [[], []];
  for await (const event of core.sampler.generate({ requestId: `bench-${requests}`, tokenIds: prompt, maxTokens })) {
    if (event.type !== 'token') continue;
    tokens.push(event.tokenId);
    logprobs.push(event.logprob);
  }
  return { prompt, tokens, logprobs };
}

const makePrompt = (seed: number, length: number): number[] =>
  Array.from({ length }, (_, i) => (seed * 131 + i * 29 + ((i * i) % 17)) % modelConfig.vocab_size);

async function samplingRate(core: PolicyCore, batch: number): Promise<number> {
  const newTokens = batch === 1 ? 240 : 200;
  const rates = [];
  for (let round = 0; round < shape.rounds; round++) {
    const startedMs = performance.now();
    await Promise.all(
      Array.from({ length: batch }, (_, i) => sample(core, makePrompt(round * batch + i, 4), newTokens)),
    );
    rates.push((1000 * batch * newTokens) / (performance.now() - startedMs));
  }
  return Math.max(...rates);
}

async function grpoStep(core: PolicyCore, modelDir: string): Promise<{ sampleMs: number; trainMs: number }> {
  const startedMs = performance.now();
  const prompts = Array.from({ length: shape.prompts }, (_, p) => makePrompt(requests + p, shape.promptTokens));
  const groups = prompts.flatMap((prompt) =>
    Array.from({ length: shape.samples }, () => sample(core, prompt, shape.newTokens)),
  );
  const samples = await Promise.all(groups);
  const sampledMs = performance.now();
  await core.trainer.forwardBackward('bench', samples.map(asDatum), 'ppo');
  const { step } = await core.trainer.optimStep('bench', {
    ...defaultAdamParams,
    learningRate: 1e-3,
    gradClipNorm: 1,
  });
  const dir = join(modelDir, `step-${step}`);
  await core.trainer.save('bench', dir, { optimizer: false });
  await core.sampler.loadWeights(dir, String(step));
  return { sampleMs: sampledMs - startedMs, trainMs: performance.now() - sampledMs };
}

function asDatum({ prompt, tokens, logprobs }: Sample, index: number): Datum {
  const all = [...prompt, ...tokens];
  const masked = new Array<number>(prompt.length - 1).fill(0);
  return {
    inputTokens: all.slice(0, -1),
    targetTokens: all.slice(1),
    weights: [...masked, ...tokens.map(() => 1 / tokens.length)],
    logprobs: [...masked, ...logprobs],
    advantages: [...masked, ...tokens.map(() => (index % 2 === 0 ? 1 : -1))],
  };
}

/** Measures forward, backward and AdamW over 64 sequences of 96 tokens. */
async function trainMs(core: PolicyCore): Promise<number> {
  const datums = Array.from({ length: 64 }, (_, i): Datum => {
    const tokens = makePrompt(i, shape.trainLength + 1);
    const weights = new Array<number>(shape.trainLength).fill(1 / shape.trainLength);
    return { inputTokens: tokens.slice(0, -1), targetTokens: tokens.slice(1), weights };
  });
  const times = [];
  for (let round = 0; round < shape.rounds; round++) {
    const startedMs = performance.now();
    await core.trainer.forwardBackward('bench', datums, 'cross_entropy');
    await core.trainer.optimStep('bench', defaultAdamParams);
    times.push(performance.now() - startedMs);
  }
  return Math.min(...times);
}

function print(figures: Figures): void {
  const rows: readonly (readonly [keyof Figures, string])[] = [
    ['sampleBatch1TokensPerS', 'sampled tokens/s, batch 1'],
    ['sampleBatch64TokensPerS', 'sampled tokens/s, batch 64'],
    ['grpoStepMs', 'GRPO step, ms (8 x 8 x 40 new tokens)'],
    ['grpoSampleMs', '  sampling'],
    ['grpoTrainMs', '  training, saving, loading'],
    ['train6144TokensMs', 'forward + backward + AdamW, 6144 tokens, ms'],
  ];
  console.log('best of 5');
  for (const [key, label] of rows) console.log(`${label.padEnd(46)}${figures[key].toFixed(0).padStart(9)}`);
}

const modelDir = mkdtempSync(join(tmpdir(), 'policy-bench-'));
try {
  writeFileSync(join(modelDir, 'config.json'), JSON.stringify(modelConfig));
  const figures = await measure(modelDir);
  if (process.argv.includes('--json')) console.log(JSON.stringify(figures));
  else print(figures);
} finally {
  rmSync(modelDir, { recursive: true });
}
