import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { Engine, GenerateEvent, GenerateRequest } from '../../infra/engine/engine.ts';
import { promptOf } from '../../infra/engine/prompt.ts';
import type { Datum, OptimStep, Trainer } from '../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

/** A running engine and trainer of any kind, on which the same suite tests temper's clients. */
export interface AdapterStack {
  /** Creates a new client, as another process would. */
  engine(): Engine;
  trainer(): Trainer;
  readonly method: 'reload' | 'lora';
  /** The largest difference between a logprob of the engine and of the trainer; 0 for bit-identical. */
  readonly tolerance: number;
  /** Twelve ids of the vocabulary. */
  readonly tokens: readonly number[];
  /** The smallest version that was never published to this engine. */
  readonly firstVersion: number;
  close(): Promise<void>;
}

const adam = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0 } as const;
const never = new AbortController().signal;

export function testAdapters(name: string, open: () => Promise<AdapterStack>): void {
  describe(`adapters on ${name}`, () => {
    let stack: AdapterStack;
    let trainer: Trainer;
    let engine: Engine;
    let modelId: string;
    let sequence = 0;
    const next = () => ++sequence;

    before(async () => {
      stack = await open();
      trainer = stack.trainer();
      engine = stack.engine();
      modelId = await trainer.createModel({ loraRank: 8, seed: 1 });
    });
    after(async () => {
      await trainer?.unload(modelId);
      trainer?.close();
      await stack?.close();
    });

    const logprobsOf = async (model: string, tokens: readonly number[], at: number) => {
      const data = [contextDatum(tokens)];
      const request = { modelId: model, sequence: at, data, loss: 'cross_entropy', forwardOnly: true } as const;
      return (await trainer.forwardBackward(request)).logprobs[0] ?? [];
    };
    const policyDatum = async (advantage: number): Promise<Datum> => {
      const logprobs = await logprobsOf(modelId, stack.tokens, next());
      const datum = contextDatum(stack.tokens);
      return { ...datum, logprobs, advantages: datum.targets.map(() => advantage) };
    };
    const step = (learningRate: number, at = next()): OptimStep => ({ modelId, sequence: at, learningRate, ...adam });
    const publish = async (version: number): Promise<string> => {
      const label = `v${version}-${randomUUID().slice(0, 8)}`;
      const path = await trainer.saveForSampler(modelId, label, next());
      await engine.publish({ version, name: label, path, method: stack.method });
      return path;
    };

    it('a step sent again under its sequence id is made once', async () => {
      const before = await logprobsOf(modelId, stack.tokens, next());
      const data = [await policyDatum(1), await policyDatum(0.5)];
      const request = { modelId, sequence: next(), data, loss: 'importance_sampling' } as const;
      const first = await trainer.forwardBackward(request);
      assert.deepEqual(await trainer.forwardBackward(request), first);
      const once = step(1e-3);
      const metrics = await trainer.optimStep(once);
      const moved = await logprobsOf(modelId, stack.tokens, next());
      assert.ok(gapOf(before, moved) > 1e-3, 'the step moved the weights');
      assert.deepEqual(await trainer.optimStep(once), metrics);
      assert.deepEqual(await logprobsOf(modelId, stack.tokens, next()), moved);
    });

    it('a sequence id with another payload is refused', async () => {
      const used = step(0);
      await trainer.optimStep(used);
      await rejects(trainer.optimStep({ ...used, learningRate: 0.5 }), 'TrainerRefused', /reused/);
    });

    it('losses are summed, whatever the server’s reduction', async () => {
      const one = await policyDatum(1);
      const gradient = async (data: readonly Datum[]) => {
        await trainer.forwardBackward({ modelId, sequence: next(), data, loss: 'importance_sampling' });
        const metrics = await trainer.optimStep(step(0));
        return metrics.grad_norm ?? metrics['skyrl.ai/grad_norm'] ?? Number.NaN;
      };
      const single = await gradient([one]);
      assertClose((await gradient([one, one])) / single, 2, 1e-3);
      const firstOnly = { ...one, advantages: one.targets.map((_, index) => (index === 0 ? 1 : 0)) };
      const masked = { ...firstOnly, weights: one.targets.map((_, index) => (index === 0 ? 1 : 0)) };
      assertClose((await gradient([masked])) / (await gradient([firstOnly])), 1, 1e-3);
    });

    it('a checkpoint is saved once and loads into a new model with its logprobs', async () => {
      const path = await trainer.save(modelId, 'one', next());
      assert.equal(await trainer.save(modelId, 'one', next()), path);
      const copy = await trainer.createModel({ loraRank: 8, seed: 2 });
      await trainer.load(copy, { path, optimizer: true }, 1);
      assert.deepEqual(await logprobsOf(copy, stack.tokens, 2), await logprobsOf(modelId, stack.tokens, next()));
      await trainer.unload(copy);
    });

    it('a published version samples tokens with the trainer’s logprobs', async () => {
      const version = stack.firstVersion;
      const path = await publish(version);
      const sample = await generated(engine, { ...requestOf(stack.tokens), seed: 7, maxTokens: 12 });
      assert.deepEqual(sample.versions, [{ version, start: 0, end: sample.tokenIds.length }]);
      const all = [...stack.tokens, ...sample.tokenIds];
      const trained = (await logprobsOf(modelId, all, next())).slice(stack.tokens.length - 1);
      const sampled = gapOf(sample.logprobs, trained);
      assert.ok(sampled <= stack.tolerance, `expected a gap of at most ${stack.tolerance}, got ${sampled}`);
      console.log(`# ${name}: largest logprob gap ${sampled}; weights at ${path}`);
    });

    it('publishing is repeatable, and another process sees the newest version', async () => {
      const other = stack.engine();
      const name = `again-${randomUUID().slice(0, 8)}`;
      const path = await trainer.saveForSampler(modelId, name, next());
      assert.equal(await trainer.saveForSampler(modelId, name, next()), path);
      const publication = { version: stack.firstVersion + 1, name, path, method: stack.method };
      await engine.publish(publication);
      await engine.publish(publication);
      const health = await other.health();
      assert.deepEqual([health.ready, health.paused, health.version], [true, false, publication.version]);
      assert.ok((health.contextLength ?? 0) >= 512);
      const sample = await generated(other, { ...requestOf(stack.tokens), maxTokens: 3 });
      assert.equal(sample.versions.at(-1)?.version, publication.version);
    });

    it('a pinned version samples under its number after another one is published', async () => {
      const earlier = stack.firstVersion + 1;
      assert.equal(await engine.pinVersion(earlier), true);
      await publish(earlier + 1);
      const asked = { ...requestOf(stack.tokens), maxTokens: 2, policyVersion: earlier };
      const { versions } = await generated(stack.engine(), asked);
      assert.deepEqual(new Set(versions.map(({ version }) => version)), new Set([earlier]));
    });

    it('missing weights are a typed failure, and the engine accepts the next publication', async () => {
      const missing = { version: stack.firstVersion + 3, name: 'none', path: '/nowhere/at/all', method: stack.method };
      await assert.rejects(engine.publish(missing), TemperFailure);
      await publish(stack.firstVersion + 3);
      assert.equal((await engine.health()).version, stack.firstVersion + 3);
      await generated(engine, { ...requestOf(stack.tokens), maxTokens: 2 });
    });

    it('aborting the signal ends the generation with its reason', async () => {
      const leaving = new AbortController();
      const reason = new Error('the caller has gone');
      const read = async () => {
        const request = { ...requestOf(stack.tokens), maxTokens: 400 };
        for await (const event of engine.generate(request, leaving.signal)) {
          assert.equal(event.finishReason, undefined);
          leaving.abort(reason);
        }
      };
      await assert.rejects(read(), reason);
    });

    it('a model that is not loaded is a lost model', async () => {
      await rejects(logprobsOf('model_00000000', stack.tokens, 1), 'TrainerLostModel', /model/i);
    });

    it('a datum that its loss cannot use is not sent', async () => {
      const datum = contextDatum(stack.tokens);
      const request = { modelId, sequence: next(), data: [datum], loss: 'ppo' } as const;
      await rejects(trainer.forwardBackward(request), 'TrainerRefused', /data\[0\]\.logprobs: expected 11 numbers/);
    });
  });
}

function contextDatum(tokens: readonly number[]): Datum {
  return { tokens: tokens.slice(0, -1), targets: tokens.slice(1), weights: tokens.slice(1).map(() => 1) };
}

function requestOf(tokenIds: readonly number[]): GenerateRequest {
  const prompt = promptOf(tokenIds);
  return { requestId: randomUUID(), prompt, maxTokens: 8, temperature: 1, topP: 1, topK: -1, stopTokenIds: [] };
}

async function generated(engine: Engine, request: GenerateRequest) {
  const events: GenerateEvent[] = [];
  for await (const event of engine.generate(request, never)) events.push(event);
  const last = events.at(-1);
  assert.equal(last?.finishReason, 'length');
  return {
    tokenIds: events.flatMap((event) => event.tokenIds),
    logprobs: events.flatMap((event) => event.logprobs),
    versions: last?.versions ?? [],
  };
}

function gapOf(a: readonly number[], b: readonly number[]): number {
  assert.equal(a.length, b.length);
  return Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));
}

function assertClose(value: number, expected: number, relative: number): void {
  assert.ok(Math.abs(value / expected - 1) <= relative, `expected ${expected}, got ${value}`);
}

async function rejects(work: Promise<unknown>, type: string, message: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof TemperFailure);
    assert.equal(error.type, type);
    assert.match(error.message, message);
    return true;
  });
}
