import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import fc from 'fast-check';
import { PolicyError, type PolicyErrorCode } from '../../../../infra/kits/embedded-policy/errors.ts';
import { parseModelConfig } from '../../../../infra/kits/embedded-policy/model/config.ts';
import { createRandom } from '../../../../infra/kits/embedded-policy/model/random.ts';
import { createTrainer } from '../../../../infra/kits/embedded-policy/trainer/trainer.ts';
import {
  type Datum,
  defaultAdamParams,
  type TrainerCore,
} from '../../../../infra/kits/embedded-policy/trainer-core.ts';
import { makeModelDir, smallConfig } from './support/model-dir.ts';

const config = parseModelConfig(smallConfig);
const contextLength = smallConfig.max_position_embeddings;
const adamParams = { ...defaultAdamParams, learningRate: 3e-3, weightDecay: 0.01, gradClipNorm: 1 };

const trainer = (): TrainerCore => createTrainer({ config, contextLength });

function makeDatums(seed: number, count: number): Datum[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => {
    const length = 1 + Math.floor(random.next() * (contextLength - 1));
    const of = (value: () => number): number[] => Array.from({ length }, value);
    const token = (): number => Math.floor(random.next() * config.vocabSize);
    return {
      inputTokens: of(token),
      targetTokens: of(token),
      weights: of(() => (random.next() < 0.3 ? 0 : random.next() / length)),
      logprobs: of(() => -3 - random.next()),
      advantages: of(() => random.normal()),
      referenceLogprobs: of(() => -3 - random.next()),
    };
  });
}

const klConfig = { kl_coef: 0.05 };

async function trainSteps(t: TrainerCore, modelId: string, from: number, to: number): Promise<void> {
  for (let step = from; step < to; step++) {
    await t.forwardBackward(modelId, makeDatums(step, 5), 'ppo', { lossConfig: klConfig });
    await t.optimStep(modelId, adamParams);
  }
}

const refusal = (code: PolicyErrorCode, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PolicyError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, text);
  return true;
};

it('equal seeds and datums give byte-identical weights, however a batch is divided into calls', async (context) => {
  const { base } = makeModelDir(context);
  const checksums = await Promise.all(
    [[6], [1, 2, 3], [1, 1, 1, 1, 1, 1]].map(async (cuts) => {
      const t = trainer();
      await t.createModel('m', { baseDir: base });
      for (let step = 0; step < 3; step++) {
        const datums = makeDatums(step, 6);
        for (const cut of cuts) await t.forwardBackward('m', datums.splice(0, cut), 'ppo', { lossConfig: klConfig });
        await t.optimStep('m', adamParams);
      }
      return (await t.status('m')).checksum;
    }),
  );
  assert.equal(new Set(checksums).size, 1);
});

it('a datum gives the same logprobs and losses alone and beside any others', async (context) => {
  const { base } = makeModelDir(context);
  const t = trainer();
  await t.createModel('m', { baseDir: base });
  const datums = makeDatums(1, 8);
  const together = await t.forwardBackward('m', datums, 'cispo', { forwardOnly: true });
  const reversed = await t.forwardBackward('m', datums.toReversed(), 'cispo', { forwardOnly: true });
  assert.deepEqual(together.outputs, reversed.outputs.toReversed());
  for (const [i, datum] of datums.entries()) {
    const alone = await t.forwardBackward('m', [datum], 'cispo', { forwardOnly: true });
    assert.deepEqual(alone.outputs[0], together.outputs[i]);
  }
});

it('saving, loading and continuing equals no interruption, byte for byte, even in another trainer', async (context) => {
  const { root, base } = makeModelDir(context);
  const straight = trainer();
  await straight.createModel('m', { baseDir: base });
  await trainSteps(straight, 'm', 0, 4);
  const first = trainer();
  await first.createModel('m', { baseDir: base });
  await trainSteps(first, 'm', 0, 2);
  await first.forwardBackward('m', makeDatums(2, 5), 'ppo', { lossConfig: klConfig }); // accumulated, not saved: it comes again
  const saved = await first.save('m', join(root, 'two'), { optimizer: true });
  const second = trainer();
  await second.createModel('other', { baseDir: base, seed: 99 });
  const loaded = await second.load('other', join(root, 'two'), { optimizer: true });
  assert.equal(loaded.checksum, saved.checksum);
  await trainSteps(second, 'other', 2, 4);
  for (const [t, id, name] of [
    [straight, 'm', 'a'],
    [second, 'other', 'b'],
  ] as const)
    await t.save(id, join(root, name), { optimizer: true });
  for (const file of ['model.safetensors', 'optimizer.safetensors', 'config.json']) {
    assert.deepEqual(readFileSync(join(root, 'a', file)), readFileSync(join(root, 'b', file)), file);
  }
  const { step, received } = await second.status('other');
  assert.equal(step, 4);
  assert.deepEqual(
    received.map((entry) => `${entry.step} ${entry.kind}`),
    [0, 1, 2, 3].flatMap((s) => [`${s} forward_backward`, `${s} optim_step`]),
  );
});

it('loading without optimizer state starts moments and steps at zero', async (context) => {
  const { root, base } = makeModelDir(context);
  const t = trainer();
  await t.createModel('m', { baseDir: base });
  await trainSteps(t, 'm', 0, 2);
  await t.save('m', join(root, 'weights'), { optimizer: false });
  await t.createModel('fresh', { baseDir: join(root, 'weights') });
  const loaded = await t.load('m', join(root, 'weights'), { optimizer: false });
  assert.deepEqual({ ...loaded, modelId: '', baseDir: '' }, { ...(await t.status('fresh')), modelId: '', baseDir: '' });
  await trainSteps(t, 'm', 0, 1);
  await trainSteps(t, 'fresh', 0, 1);
  assert.equal((await t.status('m')).checksum, (await t.status('fresh')).checksum);
});

it('broken checkpoints are refused by name and change nothing', async (context) => {
  const { root, base } = makeModelDir(context);
  const t = trainer();
  await t.createModel('m', { baseDir: base });
  await trainSteps(t, 'm', 0, 1);
  const good = join(root, 'good');
  await t.save('m', good, { optimizer: true });
  await trainSteps(t, 'm', 1, 2);
  const before = await t.status('m');
  const load = (dir: string) => t.load('m', dir, { optimizer: true });
  await assert.rejects(
    t.save('m', good, { optimizer: true }),
    refusal('checkpoint-exists', /good: the directory already exists/),
  );
  await assert.rejects(
    load(join(root, 'missing')),
    refusal('invalid-checkpoint', /missing: expected a readable safetensors file/),
  );

  const model = readFileSync(join(good, 'model.safetensors'));
  writeFileSync(join(good, 'model.safetensors'), model.subarray(0, model.length - 10));
  await assert.rejects(load(good), refusal('invalid-checkpoint', /cut off/));
  const withNaN = Buffer.from(model);
  withNaN.writeFloatLE(Number.NaN, model.length - 4);
  writeFileSync(join(good, 'model.safetensors'), withNaN);
  await assert.rejects(load(good), refusal('invalid-checkpoint', /expected a finite number, got NaN/));
  const otherWeights = Buffer.from(model);
  otherWeights.writeFloatLE(0.5, model.length - 4);
  writeFileSync(join(good, 'model.safetensors'), otherWeights);
  await assert.rejects(load(good), refusal('invalid-checkpoint', /the optimizer state of weights/));
  writeFileSync(join(good, 'model.safetensors'), 'not a safetensors file at all');
  await assert.rejects(load(good), refusal('invalid-checkpoint', /expected a header within/));
  const other = makeModelDir(context, { ...smallConfig, num_hidden_layers: 1 });
  await assert.rejects(t.createModel('x', { baseDir: other.base }), refusal('invalid-model-dir', /architecture/));
  assert.deepEqual(await t.status('m'), before);
});

it('every malformed datum is refused by field, expected and got, and leaves the gradient unchanged', async (context) => {
  const { base } = makeModelDir(context);
  const t = trainer();
  await t.createModel('m', { baseDir: base });
  const [good] = makeDatums(1, 1);
  assert.ok(good !== undefined);
  const broken: readonly (readonly [Partial<Record<keyof Datum, unknown>>, RegExp])[] = [
    [{ inputTokens: [] }, /inputTokens.length: expected 1 to 96/],
    [{ inputTokens: new Array(97).fill(1) }, /inputTokens.length: expected 1 to 96 \(the context\), got 97/],
    [{ targetTokens: [1] }, /targetTokens.length: expected \d+, as inputTokens, got 1/],
    [
      { targetTokens: Array.from(good.targetTokens, () => 32) },
      /targetTokens\[0\]: expected a token id from 0 to 31, got 32/,
    ],
    [
      { inputTokens: Array.from(good.inputTokens, () => 1.5) },
      /inputTokens\[0\]: expected a token id from 0 to 31, got 1.5/,
    ],
    [
      { advantages: Array.from(good.inputTokens, () => Number.NaN) },
      /advantages\[0\]: expected a finite float32, got NaN/,
    ],
    [{ logprobs: Array.from(good.inputTokens, () => 1e300) }, /logprobs\[0\]: expected a finite float32/],
    [{ weights: [] }, /weights.length/],
    [{ logprobs: undefined }, /logprobs: expected \d+ numbers, since ppo needs them, got none/],
    [{ referenceLogprobs: undefined }, /referenceLogprobs: expected \d+ numbers, since kl_coef is above 0, got none/],
  ];
  for (const [change, text] of broken) {
    const datum = { ...good, ...change } as Datum;
    await assert.rejects(
      t.forwardBackward('m', [good, datum], 'ppo', { lossConfig: klConfig }),
      refusal('invalid-datum', text),
    );
  }
  await assert.rejects(t.forwardBackward('m', [], 'ppo'), refusal('invalid-datum', /at least one datum/));
  await assert.rejects(t.forwardBackward('unknown', [good], 'ppo'), refusal('unknown-model', /m/));
  await assert.rejects(t.createModel('m', { baseDir: base }), refusal('model-exists', /not in use/));
  const status = await t.status('m');
  assert.deepEqual([status.accumulatedDatums, status.received], [0, []]);
});

it('a loss, gradient or update that is not finite is refused and leaves weights and gradient unchanged', async (context) => {
  const { base } = makeModelDir(context);
  const [reference, t] = [trainer(), trainer()];
  await reference.createModel('m', { baseDir: base });
  await t.createModel('m', { baseDir: base });
  const [good, bad] = makeDatums(2, 2);
  assert.ok(good !== undefined && bad !== undefined);
  const fill = (value: number): number[] => Array.from(bad.inputTokens, () => value);
  await t.forwardBackward('m', [good], 'ppo', { lossConfig: klConfig });
  const before = await t.status('m');
  const explosive: readonly Datum[] = [
    { ...bad, logprobs: fill(-1e30) },
    { ...bad, advantages: fill(3e38), weights: fill(3e38) },
    { ...bad, advantages: fill(3e38), weights: fill(1) },
  ];
  for (const datum of explosive) {
    await assert.rejects(
      t.forwardBackward('m', [good, datum], 'importance_sampling'),
      refusal('non-finite', /expected a finite/),
    );
  }
  for (const change of [{ learningRate: Number.NaN }, { beta1: 1 }, { eps: 0 }, { weightDecay: -1 }]) {
    await assert.rejects(t.optimStep('m', { ...adamParams, ...change }), refusal('invalid-adam-params', /expected/));
  }
  assert.deepEqual(await t.status('m'), before);
  await reference.forwardBackward('m', [good], 'ppo', { lossConfig: klConfig });
  assert.equal((await t.optimStep('m', adamParams)).checksum, (await reference.optimStep('m', adamParams)).checksum);
  const unharmed = await t.status('m');
  await t.forwardBackward('m', [good], 'ppo', { lossConfig: klConfig });
  await assert.rejects(
    t.optimStep('m', { ...adamParams, learningRate: 1e300 }),
    refusal('non-finite', /weights are unchanged/),
  );
  assert.equal((await t.status('m')).checksum, unharmed.checksum);
});

it('for any numbers, results are finite or refused by type', async (context) => {
  const { base } = makeModelDir(context);
  const t = trainer();
  await t.createModel('m', { baseDir: base });
  const wild = fc.oneof(fc.float({ noNaN: false }), fc.constantFrom(0, -0, 3e38, -3e38, 1e-40, Number.NaN));
  await fc.assert(
    fc.asyncProperty(fc.array(wild, { minLength: 3, maxLength: 3 }), wild, async (values, rate) => {
      const datum = {
        inputTokens: [1, 2, 3],
        targetTokens: [2, 3, 4],
        logprobs: values,
        advantages: values,
        weights: [1, 1, 1],
      };
      const typed = (error: unknown) => void assert.ok(error instanceof PolicyError, String(error));
      await t.forwardBackward('m', [datum], 'importance_sampling').catch(typed);
      await t.optimStep('m', { ...adamParams, learningRate: rate }).catch(typed);
      // A huge learning rate makes the weights huge, though finite; they may overflow before they become a logprob.
      const plain = { ...datum, logprobs: [0, 0, 0], advantages: [0, 0, 0] };
      const result = await t.forwardBackward('m', [plain], 'ppo', { forwardOnly: true }).catch(typed);
      assert.ok(result === undefined || result.outputs[0]?.logprobs.every(Number.isFinite));
    }),
    { numRuns: 60 },
  );
});

it('cross entropy memorises a sequence', async (context) => {
  const { base } = makeModelDir(context);
  const t = trainer();
  await t.createModel('m', { baseDir: base });
  const tokens = makeDatums(3, 1)[0]?.inputTokens ?? [];
  const all = Array.from(tokens);
  const datum = {
    inputTokens: all.slice(0, -1),
    targetTokens: all.slice(1),
    weights: all.slice(1).map(() => 1 / all.length),
  };
  let loss = Number.POSITIVE_INFINITY;
  for (let step = 0; step < 60; step++) {
    const { metrics } = await t.forwardBackward('m', [datum], 'cross_entropy');
    await t.optimStep('m', { ...adamParams, learningRate: 1e-2, weightDecay: 0 });
    loss = metrics['loss:sum'] ?? Number.NaN;
  }
  assert.ok(loss < 0.1, `loss ${loss}`);
});
