import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createEngineConnection } from '../../../../../infra/engine/connection.ts';
import { servedVersions } from '../../../../../infra/engine/engine.ts';
import { promptOf } from '../../../../../infra/engine/prompt.ts';
import { unpinWeights } from '../../../../../infra/engine/vllm/pin.ts';
import type { Trainer } from '../../../../../infra/trainer/trainer.ts';
import { startTestPolicy } from './policy-server.ts';

const tokens = [1, 5, 9, 13, 17, 21];
const datum = { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: [1, 1, 1, 1, 1] };
const adam = { learningRate: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 };

describe('a pinned policy version', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
    await publish(1);
  });
  after(async () => {
    trainer.close();
    await policy.close();
  });

  const served = async () => (await servedVersions(policy.engine())).versions;

  /** Publishes a new model, trained for as many steps as its version. */
  async function publish(version: number, keep: readonly number[] = []): Promise<void> {
    const modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
    let sequence = 0;
    for (let step = 0; step < version; step += 1) {
      await trainer.forwardBackward({ modelId, sequence: ++sequence, data: [datum], loss: 'cross_entropy' });
      await trainer.optimStep({ modelId, sequence: ++sequence, ...adam });
    }
    const path = await trainer.saveForSampler(modelId, `v${version}`, ++sequence);
    await policy.engine().publish({ version, name: `v${version}`, path, method: 'reload', keep });
  }

  /** Samples tokens with their logprobs and versions. */
  async function sampled(policyVersion?: number) {
    const sampling = { maxTokens: 4, temperature: 1, topP: 1, topK: -1, stopTokenIds: [], seed: 7 };
    const request = { requestId: `${Math.random()}`, prompt: promptOf(tokens), ...sampling };
    const pinned = policyVersion === undefined ? {} : { policyVersion };
    const [ids, logprobs, versions]: [number[], number[], Set<number>] = [[], [], new Set()];
    for await (const event of policy.engine().generate({ ...request, ...pinned }, AbortSignal.timeout(240_000))) {
      ids.push(...event.tokenIds);
      logprobs.push(...event.logprobs);
      for (const { version } of event.versions ?? []) versions.add(version);
    }
    return { ids, logprobs, versions: [...versions] };
  }

  it('samples the same, whatever is published later', async () => {
    const first = await sampled();
    assert.deepEqual(first.versions, [1]);
    assert.equal(await policy.engine().pinVersion(1), true);
    await publish(2, [1]);
    const later = await sampled();
    assert.deepEqual(later.versions, [2]);
    assert.notDeepEqual(later.logprobs, first.logprobs);
    assert.deepEqual(await sampled(1), first);
    assert.deepEqual(await served(), [2, 1]);
  });

  it('is still pinned after a restart of the server', async () => {
    const before = await sampled(1);
    await policy.restart();
    assert.deepEqual(await sampled(1), before);
    assert.deepEqual((await sampled()).versions, [2]);
  });

  it('must have been in service: a request for any other is sampled by the version in service', async () => {
    assert.equal(await policy.engine().pinVersion(7), false);
    assert.deepEqual((await sampled(7)).versions, [2]);
  });

  it('survives a publication that does not know it yet, and is unpinned by a later one', async () => {
    await publish(3);
    assert.deepEqual(await served(), [3, 1]);
    const inAnHour = Date.now() + 3_600_000;
    const connection = createEngineConnection(policy);
    await unpinWeights(connection, { prefix: 'policy', keep: [1] }, undefined, inAnHour);
    assert.deepEqual(await served(), [3, 1]);
    await unpinWeights(connection, { prefix: 'policy', keep: [] }, undefined, inAnHour);
    assert.deepEqual(await served(), [3]);
    assert.deepEqual((await sampled(1)).versions, [3]);
  });

  it('samples under its name, and unknown names are refused', async () => {
    const post = async (path: string, body: unknown) => {
      const headers = { 'content-type': 'application/json' };
      const reply = await fetch(`${policy.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return `${reply.status} ${await reply.text()}`;
    };
    assert.equal(await policy.engine().pinVersion(3), true);
    const body = { token_ids: tokens, sampling_params: { max_tokens: 1 } };
    assert.match(await post('/inference/v1/generate', { ...body, model: 'policy-v3' }), /^200/);
    assert.match(await post('/inference/v1/generate', { ...body, model: 'policy-v4' }), /^404 .*`policy`, `policy-v3`/);
    const outside = { lora_name: 'policy-v9', lora_path: '/etc' };
    assert.match(await post('/v1/load_lora_adapter', outside), /^400 .*lora_path: expected a checkpoint below/);
    assert.match(await post('/v1/load_lora_adapter', { ...outside, lora_name: '../x' }), /^400 .*lora_name/);
    assert.match(await post('/v1/unload_lora_adapter', { lora_name: 'policy-v9' }), /^404/);
  });
});
