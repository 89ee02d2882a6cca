import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PolicyCore } from '../../../../infra/kits/embedded-policy/core.ts';
import { createPolicyCore } from '../../../../infra/kits/embedded-policy/create-policy-core.ts';
import { createRandom } from '../../../../infra/kits/embedded-policy/model/random.ts';
import type { SampleRequest } from '../../../../infra/kits/embedded-policy/sampler-core.ts';
import type { Datum } from '../../../../infra/kits/embedded-policy/trainer-core.ts';
import { collect, makeModelDir, type Sampled } from './support/model-dir.ts';

const random = createRandom(11);
const below = (limit: number): number => Math.floor(random.next() * limit);

/** Ragged requests: prompts of 1 to 40 tokens, 1 to 50 new ones, some prompts shared or extensions of another. */
function raggedRequests(count: number): SampleRequest[] {
  const prompts = Array.from({ length: 12 }, () => Array.from({ length: 1 + below(40) }, () => below(32)));
  return Array.from({ length: count }, (_, i) => {
    const prompt = prompts[below(prompts.length)] ?? [0];
    const tokenIds = i % 3 === 0 ? [...prompt, below(32), below(32)] : prompt;
    return {
      requestId: `r${i}`,
      tokenIds,
      maxTokens: 1 + below(50),
      seed: i,
      stopTokenIds: [31],
      promptLogprobs: i % 7 === 0,
    };
  });
}

async function sampleAll(core: PolicyCore, requests: readonly SampleRequest[]): Promise<Sampled[]> {
  return Promise.all(requests.map((request) => collect(request, core.sampler.generate(request))));
}

function asDatum({ request, tokens }: Sampled): Datum {
  const all = [...Array.from(request.tokenIds), ...tokens];
  return { inputTokens: all.slice(0, -1), targetTokens: all.slice(1), weights: new Float32Array(all.length - 1) };
}

it('sampler and trainer logprobs are bit-identical over ragged continuous batching', async (context) => {
  const { base } = makeModelDir(context);
  const core = await createPolicyCore({ modelDir: base, slots: 8 });
  context.after(() => core.close());
  await core.trainer.createModel('m', { baseDir: base });
  const sampled = await sampleAll(core, raggedRequests(120));
  const { outputs } = await core.trainer.forwardBackward('m', sampled.map(asDatum), 'cross_entropy', {
    forwardOnly: true,
  });
  for (const [i, sample] of sampled.entries()) {
    const trained = Array.from(outputs[i]?.logprobs ?? []);
    const start = sample.request.tokenIds.length - 1;
    assert.deepEqual(sample.logprobs, trained.slice(start));
    if (sample.request.promptLogprobs) assert.deepEqual(sample.prompt, [null, ...trained.slice(0, start)]);
  }
  const status = await core.sampler.status();
  assert.ok(status.reusedTokens > 0, 'shared prompts are taken over from another cache');
  assert.equal(status.running + status.waiting, 0);
});

it('a seeded request gives the same tokens alone, beside other requests, and with any number of slots', async (context) => {
  const { base } = makeModelDir(context);
  const requests = raggedRequests(40);
  const [crowded, alone] = await Promise.all(
    [16, 1].map(async (slots) => {
      const core = await createPolicyCore({ modelDir: base, slots });
      context.after(() => core.close());
      return sampleAll(core, requests);
    }),
  );
  assert.deepEqual(crowded, alone);
});
