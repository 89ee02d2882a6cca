import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { provenGap } from '../../activities/trainer/probe.ts';
import type { Datum, Trainer } from '../../infra/trainer/trainer.ts';
import { startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const never = new AbortController().signal;
const adam = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 } as const;
const tokens = [5, 6, 7, 8, 9, 10];
const datum = { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: [1, 1, 1, 1, 1] };

describe('the proof of a published version', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  let modelId: string;
  let sequence = 0;
  const next = () => ++sequence;
  const forward = async (data: readonly Datum[]) =>
    (await trainer.forwardBackward({ modelId, sequence: next(), data, loss: 'cross_entropy', forwardOnly: true }))
      .logprobs;
  const learn = async () => {
    await trainer.forwardBackward({ modelId, sequence: next(), data: [datum], loss: 'cross_entropy' });
    await trainer.optimStep({ modelId, sequence: next(), learningRate: 0.05, ...adam });
  };
  const publish = async (version: number) => {
    const name = `v${version}`;
    const path = await trainer.saveForSampler(modelId, name, next());
    await policy.engine().publish({ version, name, path, method: 'reload' });
  };

  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
    modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
  });
  after(async () => {
    trainer.close();
    await policy.close();
  });

  it('finds a gap of exactly 0 on every engine that holds the trainer’s weights', async () => {
    await learn();
    await publish(1);
    assert.equal(await provenGap([policy.engine(), policy.engine()], 1, forward, never), 0);
  });

  it('refuses an engine with the right version and other weights', async () => {
    await publish(2);
    await learn();
    const proof = provenGap([policy.engine()], 2, forward, never);
    await assert.rejects(proof, { type: 'EngineUnavailable', message: /logprobs, got a gap of .* or not at all/ });
  });

  it('refuses an engine that still serves the version before', async () => {
    const proof = provenGap([policy.engine()], 3, forward, never);
    await assert.rejects(proof, { type: 'EngineUnavailable', message: /expected tokens of version 3.*version 2/ });
  });
});
