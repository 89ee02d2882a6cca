import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { readModelConfig } from '../../../../infra/kits/embedded-policy/model/config.ts';
import { createParameterLayout } from '../../../../infra/kits/embedded-policy/model/parameters.ts';
import { readOrInitializeWeights } from '../../../../infra/kits/embedded-policy/model/weights-file.ts';
import { createSampler } from '../../../../infra/kits/embedded-policy/sampler/sampler.ts';
import type { SampleEvent } from '../../../../infra/kits/embedded-policy/sampler-core.ts';
import { createTrainer } from '../../../../infra/kits/embedded-policy/trainer/trainer.ts';
import { type Datum, defaultAdamParams } from '../../../../infra/kits/embedded-policy/trainer-core.ts';
import { fold, makeModelDir, type Sampled } from './support/model-dir.ts';

const prompts = [1, 6, 11, 16, 21, 26, 31, 4];
const samplesPerPrompt = 8;
const newTokens = 4;

/** The share of tokens that are congruent to the prompt modulo 4: a quarter by chance. */
function rewardOf({ request, tokens }: Sampled): number {
  return tokens.filter((token) => token % 4 === Number(request.tokenIds[0]) % 4).length / tokens.length;
}

function asDatum(sample: Sampled, advantage: number): Datum {
  const all = [...Array.from(sample.request.tokenIds), ...sample.tokens];
  return {
    inputTokens: all.slice(0, -1),
    targetTokens: all.slice(1),
    logprobs: sample.logprobs,
    advantages: sample.tokens.map(() => advantage / (newTokens * prompts.length * samplesPerPrompt)),
  };
}

it('GRPO on sampled tokens raises the reward from chance to nearly one, with every ratio exactly 1', async (context) => {
  const { root, base } = makeModelDir(context);
  const config = readModelConfig(base);
  const weights = readOrInitializeWeights(config, createParameterLayout(config), base);
  const options = { config, contextLength: 16 } as const;
  const sampler = createSampler({ ...options, slots: 64, weights, version: '0' });
  const trainer = createTrainer(options);
  await trainer.createModel('m', { baseDir: base });

  const rollout = (step: number): Sampled[] => {
    const reads = prompts.flatMap((prompt, p) =>
      Array.from({ length: samplesPerPrompt }, (_, s) => {
        const request = {
          requestId: `${p}-${s}`,
          tokenIds: [prompt],
          maxTokens: newTokens,
          seed: (step * 8 + p) * 8 + s,
        };
        const events: SampleEvent[] = [];
        sampler.submit(request, (event) => events.push(event));
        return () => fold(request, events);
      }),
    );
    while (sampler.ready()) sampler.step();
    return reads.map((read) => read());
  };
  const means: number[] = [];
  for (let step = 0; step < 40; step++) {
    const samples = rollout(step);
    const rewards = samples.map(rewardOf);
    means.push(rewards.reduce((a, b) => a + b, 0) / rewards.length);
    const datums = samples.map((sample, i) => {
      const group = rewards.slice(i - (i % samplesPerPrompt), i - (i % samplesPerPrompt) + samplesPerPrompt);
      return asDatum(sample, Number(rewards[i]) - group.reduce((a, b) => a + b, 0) / samplesPerPrompt);
    });
    const { metrics } = await trainer.forwardBackward('m', datums, 'ppo');
    assert.equal(metrics['logprob_difference:max'], 0);
    await trainer.optimStep('m', { ...defaultAdamParams, learningRate: 5e-3, gradClipNorm: 1 });
    await trainer.save('m', join(root, String(step + 1)), { optimizer: false });
    sampler.loadWeights(join(root, String(step + 1)), String(step + 1));
  }
  assert.ok(Number(means[0]) < 0.4, `started at ${means[0]}`);
  assert.ok(Number(means.at(-1)) > 0.9, `rewards ${means.map((mean) => mean.toFixed(2)).join(' ')}`);
});
