import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { PolicyError, type PolicyErrorCode } from '../../../../infra/kits/embedded-policy/errors.ts';
import { readModelConfig } from '../../../../infra/kits/embedded-policy/model/config.ts';
import { createParameterLayout } from '../../../../infra/kits/embedded-policy/model/parameters.ts';
import { readOrInitializeWeights } from '../../../../infra/kits/embedded-policy/model/weights-file.ts';
import { createSampler, type Sampler } from '../../../../infra/kits/embedded-policy/sampler/sampler.ts';
import type { SampleEvent, SampleRequest } from '../../../../infra/kits/embedded-policy/sampler-core.ts';
import { createTrainer } from '../../../../infra/kits/embedded-policy/trainer/trainer.ts';
import {
  type Datum,
  defaultAdamParams,
  type TrainerCore,
} from '../../../../infra/kits/embedded-policy/trainer-core.ts';
import { fold, makeModelDir, type Sampled, smallConfig } from './support/model-dir.ts';

const contextLength = smallConfig.max_position_embeddings;

interface Fixture {
  readonly sampler: Sampler;
  readonly trainer: TrainerCore;
  /** Other weights of the same architecture: those of the trainer's model `m`. */
  readonly trained: string;
  start(request: SampleRequest): () => Sampled;
  steps(count: number): void;
  finishAll(): void;
}

async function makeFixture(context: TestContext, slots = 8): Promise<Fixture> {
  const { root, base } = makeModelDir(context);
  const config = readModelConfig(base);
  const weights = readOrInitializeWeights(config, createParameterLayout(config), base);
  const options = { config, contextLength } as const;
  const sampler = createSampler({ ...options, slots, weights, version: '0' });
  const trainer = createTrainer(options);
  await trainer.createModel('m', { baseDir: base });
  const tokens = Array.from({ length: 40 }, (_, i) => (i * 7) % 32);
  await trainer.forwardBackward('m', [sequenceOf(tokens, 1)], 'cross_entropy');
  await trainer.optimStep('m', { ...defaultAdamParams, learningRate: 0.02 });
  const trained = join(root, 'trained');
  await trainer.save('m', trained, { optimizer: false });
  return {
    sampler,
    trainer,
    trained,
    start(request) {
      const events: SampleEvent[] = [];
      sampler.submit(request, (event) => events.push(event));
      return () => fold(request, events);
    },
    steps(count) {
      for (let i = 0; i < count; i++) if (sampler.ready()) sampler.step();
    },
    finishAll() {
      while (sampler.ready()) sampler.step();
    },
  };
}

function sequenceOf(tokens: readonly number[], weight: number): Datum {
  const weights = tokens.slice(1).map(() => weight);
  return { inputTokens: tokens.slice(0, -1), targetTokens: tokens.slice(1), weights };
}

const long = (requestId: string): SampleRequest => ({ requestId, tokenIds: [1, 2, 3], maxTokens: 90, seed: 5 });

const refusal = (code: PolicyErrorCode, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PolicyError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, text);
  return true;
};

async function trainerLogprobs({ trainer }: Fixture, { request, tokens }: Sampled): Promise<number[]> {
  const datum = sequenceOf([...Array.from(request.tokenIds), ...tokens], 0);
  const { outputs } = await trainer.forwardBackward('m', [datum], 'cross_entropy', { forwardOnly: true });
  return Array.from(outputs[0]?.logprobs ?? []).slice(request.tokenIds.length - 1);
}

it('weights swapped in flight show in the version of each token, old first and new after', async (context) => {
  const fixture = await makeFixture(context);
  const { sampler } = fixture;
  const running = ['a', 'b', 'c'].map((id, i) => fixture.start({ ...long(id), maxTokens: 20 + 10 * i, seed: i }));
  fixture.steps(15);
  const swap = sampler.loadWeights(fixture.trained, 'step-1');
  assert.deepEqual(swap, { version: 'step-1', checksum: (await fixture.trainer.status('m')).checksum, inFlight: 3 });
  fixture.finishAll();
  const boundaries = running.map((read) => {
    const { versions, reason } = read();
    assert.equal(reason, 'length');
    const boundary = versions.indexOf('step-1');
    assert.deepEqual(
      versions,
      versions.map((_, i) => (i < boundary ? '0' : 'step-1')),
    );
    return boundary;
  });
  assert.deepEqual(boundaries, [15, 15, 15]);
});

it('after a swap, new requests reuse nothing that was computed under the old weights', async (context) => {
  const fixture = await makeFixture(context);
  const tokenIds = Array.from({ length: 30 }, (_, i) => i);
  const old = fixture.start({ ...long('a'), tokenIds, maxTokens: 40 });
  fixture.steps(10);
  fixture.sampler.loadWeights(fixture.trained, '1');
  const young = fixture.start({ ...long('b'), tokenIds, maxTokens: 40 });
  fixture.finishAll();
  const expected = await trainerLogprobs(fixture, young());
  assert.deepEqual(young().logprobs, expected);
  assert.equal(old().reason, 'length');
  assert.equal(fixture.sampler.status().reusedTokens, 0);
});

it('a swap that recomputes caches gives logprobs of the new weights, bit for bit', async (context) => {
  const fixture = await makeFixture(context);
  const read = fixture.start(long('a'));
  fixture.steps(20);
  fixture.sampler.loadWeights(fixture.trained, '1', { cache: 'recompute' });
  fixture.finishAll();
  const sample = read();
  const expected = await trainerLogprobs(fixture, sample);
  const boundary = sample.versions.indexOf('1');
  assert.equal(boundary, 20);
  assert.deepEqual(sample.logprobs.slice(boundary), expected.slice(boundary));
  assert.notDeepEqual(sample.logprobs.slice(0, boundary), expected.slice(0, boundary));
});

it('a frozen sequence continues unchanged, and requests wait meanwhile', async (context) => {
  const fixture = await makeFixture(context);
  const { sampler } = fixture;
  const undisturbed = fixture.start(long('u'));
  fixture.finishAll();
  const frozen = fixture.start(long('a'));
  fixture.steps(7);
  await sampler.pause('keep');
  const late = fixture.start(long('b'));
  fixture.finishAll();
  assert.deepEqual([frozen().tokens.length, late().tokens.length, frozen().reason], [7, 0, 'none']);
  const { paused, running, waiting } = sampler.status();
  assert.deepEqual([paused, running, waiting], [true, 1, 1]);
  sampler.resume();
  fixture.finishAll();
  for (const read of [frozen, late]) {
    assert.deepEqual([read().tokens, read().logprobs], [undisturbed().tokens, undisturbed().logprobs]);
  }
});

it('an abort ends only the named requests, with the tokens sampled so far', async (context) => {
  const fixture = await makeFixture(context, 1);
  const reads = ['a', 'b', 'c'].map((id) => fixture.start(long(id)));
  fixture.steps(12);
  assert.equal(fixture.sampler.abort(['a', 'c', 'unknown']), 2);
  fixture.finishAll();
  const [a, b, c] = reads.map((read) => read());
  assert.deepEqual([a?.reason, a?.tokens.length], ['abort', 12]);
  assert.deepEqual([c?.reason, c?.tokens.length], ['abort', 0]);
  assert.deepEqual([b?.reason, b?.tokens.length], ['length', 90]);
  assert.deepEqual(a?.tokens, b?.tokens.slice(0, 12));
  assert.equal(fixture.sampler.abort('all'), 0);
});

it('pause with abort ends running and waiting requests, and later ones wait for resume', async (context) => {
  const fixture = await makeFixture(context, 1);
  const reads = ['a', 'b'].map((id) => fixture.start(long(id)));
  fixture.steps(3);
  const { running, waiting } = await fixture.sampler.pause('abort');
  assert.deepEqual([running, waiting], [0, 0]);
  assert.deepEqual(
    reads.map((read) => [read().reason, read().tokens.length]),
    [
      ['abort', 3],
      ['abort', 0],
    ],
  );
  const late = fixture.start(long('d'));
  fixture.finishAll();
  assert.equal(late().reason, 'none');
  fixture.sampler.resume();
  fixture.finishAll();
  assert.equal(late().reason, 'length');
});

it('pause with wait resolves when running requests have finished, and leaves the rest waiting', async (context) => {
  const fixture = await makeFixture(context, 1);
  const reads = ['a', 'b'].map((id) => fixture.start(long(id)));
  fixture.steps(3);
  const paused = fixture.sampler.pause('wait');
  fixture.finishAll();
  const { running, waiting } = await paused;
  assert.deepEqual([running, waiting], [0, 1]);
  assert.deepEqual(
    reads.map((read) => read().reason),
    ['length', 'none'],
  );
  fixture.sampler.resume();
  fixture.finishAll();
  assert.equal(reads[1]?.().reason, 'length');
});

it('the samples of one prompt compute it once', async (context) => {
  const fixture = await makeFixture(context);
  const tokenIds = Array.from({ length: 60 }, (_, i) => (i * 5) % 32);
  const reads = Array.from({ length: 8 }, (_, i) =>
    fixture.start({ ...long(`r${i}`), tokenIds, maxTokens: 10, seed: i }),
  );
  fixture.finishAll();
  const { prefilledTokens, reusedTokens } = fixture.sampler.status();
  assert.deepEqual([prefilledTokens, reusedTokens], [60 + 7, 7 * 59]);
  const [first] = reads;
  assert.ok(first !== undefined);
  // The next turn of one of them starts from its cache: all but its last token, which was never an input.
  const next = [...tokenIds, ...first().tokens, 3, 4];
  fixture.start({ ...long('next'), tokenIds: next, maxTokens: 5 });
  fixture.finishAll();
  assert.equal(fixture.sampler.status().reusedTokens, 7 * 59 + 69);
});

it('a stop token ends the sequence and is part of it', async (context) => {
  const fixture = await makeFixture(context);
  const free = fixture.start(long('a'));
  fixture.finishAll();
  const stop = free().tokens[10] ?? 0;
  const stopped = fixture.start({ ...long('b'), stopTokenIds: [stop] });
  fixture.finishAll();
  assert.equal(stopped().reason, 'stop');
  assert.deepEqual(stopped().tokens, free().tokens.slice(0, free().tokens.indexOf(stop) + 1));
});

it('logprobs are those at the temperature over the whole vocabulary, whatever top-p and top-k', async (context) => {
  const fixture = await makeFixture(context);
  const run = (requestId: string, change: Partial<SampleRequest>): Sampled => {
    const read = fixture.start({ ...long(requestId), maxTokens: 20, ...change });
    fixture.finishAll();
    return read();
  };
  const greedy = run('greedy', { temperature: 0 });
  const top = run('top', { topK: 1 });
  assert.deepEqual([top.tokens, top.logprobs], [greedy.tokens, greedy.logprobs]);
  const cold = run('cold', { temperature: 0.01, topP: 0.5 });
  assert.deepEqual(cold.tokens, greedy.tokens);
  assert.ok(cold.logprobs.every((logprob, i) => logprob > Number(greedy.logprobs[i])));
});

it('a label can be changed without a change of weights', async (context) => {
  const { sampler, start, finishAll } = await makeFixture(context);
  const before = sampler.status();
  const after = sampler.setVersion('renamed');
  assert.deepEqual([after.version, after.checksum], ['renamed', before.checksum]);
  const read = start(long('a'));
  finishAll();
  assert.deepEqual(new Set(read().versions), new Set(['renamed']));
});

it('bad requests and bad weights are refused by field, and affect no other request', async (context) => {
  const fixture = await makeFixture(context);
  const running = fixture.start(long('a'));
  fixture.steps(5);
  const refused: readonly (readonly [Partial<SampleRequest>, PolicyErrorCode, RegExp])[] = [
    [
      { maxTokens: 94 },
      'context-length-exceeded',
      /expected at most 96 tokens .*, got 3 prompt tokens \+ maxTokens 94/,
    ],
    [{ tokenIds: [] }, 'invalid-request', /tokenIds.length: expected at least 1, got 0/],
    [{ tokenIds: [32] }, 'invalid-request', /tokenIds\[0\]: expected a token id from 0 to 31, got 32/],
    [{ tokenIds: [Number.NaN] }, 'invalid-request', /got NaN/],
    [{ maxTokens: 0 }, 'invalid-request', /maxTokens: expected an integer, at least 1, got 0/],
    [{ temperature: -1 }, 'invalid-request', /temperature/],
    [{ topP: 0 }, 'invalid-request', /topP/],
    [{ topK: 1.5 }, 'invalid-request', /topK/],
    [{ seed: 0.5 }, 'invalid-request', /seed/],
    [{ stopTokenIds: [-1] }, 'invalid-request', /stopTokenIds\[0\]/],
    [{ requestId: 'a' }, 'duplicate-request', /got a; abort it first/],
  ];
  for (const [change, code, text] of refused) {
    assert.throws(() => fixture.start({ ...long('z'), ...change }), refusal(code, text));
  }
  const before = fixture.sampler.status();
  assert.throws(() => fixture.sampler.loadWeights('/nowhere', '9'), refusal('invalid-checkpoint', /nowhere/));
  assert.deepEqual(fixture.sampler.status(), before);
  fixture.finishAll();
  assert.deepEqual([running().reason, running().tokens.length], ['length', 90]);
});
