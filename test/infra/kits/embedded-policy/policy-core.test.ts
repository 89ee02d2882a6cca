import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import type { PolicyCore } from '../../../../infra/kits/embedded-policy/core.ts';
import { createPolicyCore } from '../../../../infra/kits/embedded-policy/create-policy-core.ts';
import { PolicyError, type PolicyErrorCode } from '../../../../infra/kits/embedded-policy/errors.ts';
import type { SampleRequest } from '../../../../infra/kits/embedded-policy/sampler-core.ts';
import { defaultAdamParams } from '../../../../infra/kits/embedded-policy/trainer-core.ts';
import { startThread } from '../../../../infra/kits/embedded-policy/worker/thread.ts';
import { collect, makeModelDir, type Sampled } from './support/model-dir.ts';

const long = (requestId: string): SampleRequest => ({ requestId, tokenIds: [1, 2, 3], maxTokens: 90, seed: 5 });
const sample = (core: PolicyCore, request: SampleRequest): Promise<Sampled> =>
  collect(request, core.sampler.generate(request));

async function makeCore(context: TestContext): Promise<PolicyCore> {
  const core = await createPolicyCore({ modelDir: makeModelDir(context).base, slots: 2 });
  context.after(() => core.close());
  return core;
}

const refusal = (code: PolicyErrorCode, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PolicyError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, text);
  return true;
};

it('after training, saving and loading, the sampler continues with the trained weights', async (context) => {
  const { root, base } = makeModelDir(context);
  const core = await createPolicyCore({ modelDir: base });
  context.after(() => core.close());
  const created = await core.trainer.createModel('m', { baseDir: base });
  assert.equal((await core.sampler.status()).checksum, created.checksum);
  const first = await sample(core, long('a'));
  const all = [1, 2, 3, ...first.tokens];
  const masked = [0, 0];
  const datum = {
    inputTokens: all.slice(0, -1),
    targetTokens: all.slice(1),
    weights: [...masked, ...first.tokens.map(() => 0.01)],
    logprobs: [...masked, ...first.logprobs],
    advantages: [...masked, ...first.tokens.map(() => 1)],
  };
  const { metrics } = await core.trainer.forwardBackward('m', [datum], 'ppo');
  assert.deepEqual([metrics['ratio:mean'], metrics['ratio:max'], metrics['logprob_difference:max']], [1, 1, 0]);
  const { step, checksum } = await core.trainer.optimStep('m', { ...defaultAdamParams, learningRate: 0.01 });
  const dir = join(root, 'step-1');
  await core.trainer.save('m', dir, { optimizer: true });
  assert.deepEqual(await core.sampler.loadWeights(dir, String(step)), { version: '1', checksum, inFlight: 0 });
  const second = await sample(core, long('b'));
  assert.deepEqual(new Set(second.versions), new Set(['1']));
  assert.deepEqual(await core.trainer.models(), ['m']);
  await core.trainer.unload('m');
  await assert.rejects(core.trainer.status('m'), refusal('unknown-model', /got m/));
});

it('an aborted signal ends a request with the tokens so far, and leaving the loop early frees the slot', async (context) => {
  const core = await makeCore(context);
  await core.sampler.pause('keep');
  const controller = new AbortController();
  const frozen = collect(long('a'), core.sampler.generate(long('a'), controller.signal));
  assert.equal((await core.sampler.status()).waiting, 1);
  controller.abort();
  assert.equal((await frozen).reason, 'abort');
  assert.equal((await collect(long('b'), core.sampler.generate(long('b'), AbortSignal.abort()))).reason, 'abort');
  await core.sampler.resume();
  for await (const event of core.sampler.generate(long('a'))) {
    assert.equal(event.type, 'token');
    break;
  }
  assert.equal((await sample(core, long('a'))).tokens.length, 90);
  const { running, waiting } = await core.sampler.status();
  assert.deepEqual([running, waiting], [0, 0]);
});

it('a refused request throws at its first event, with field, expected and got, and the one with its id continues', async (context) => {
  const core = await makeCore(context);
  await core.sampler.pause('keep');
  const first = sample(core, long('a'));
  await assert.rejects(sample(core, long('a')), refusal('duplicate-request', /got a; abort it first/));
  await assert.rejects(sample(core, { ...long('b'), maxTokens: 94 }), (error: unknown) => {
    assert.ok(error instanceof PolicyError);
    assert.deepEqual(
      [error.code, error.details.expected],
      ['context-length-exceeded', 'at most 96 tokens (the context)'],
    );
    return true;
  });
  await core.sampler.resume();
  assert.equal((await first).tokens.length, 90);
});

it('a closed core aborts running requests and refuses later ones', async (context) => {
  const core = await makeCore(context);
  await core.sampler.pause('keep');
  const frozen = sample(core, long('a'));
  await core.close();
  assert.equal((await frozen).reason, 'abort');
  await assert.rejects(core.sampler.status(), refusal('closed', /closed/));
  await assert.rejects(core.trainer.models(), refusal('closed', /closed/));
  await assert.rejects(sample(core, long('b')), refusal('closed', /closed/));
  await core.close();
});

it('a thread that dies refuses its calls and is reported once', async () => {
  const thread = startThread('no-such-thread', {}, () => {});
  await assert.rejects(thread.call('status'), refusal('worker-crashed', /no-such-thread: the thread died/));
  assert.equal((await thread.crashed).code, 'worker-crashed');
  await thread.close();
});

it('a bad model directory is refused before anything starts', async (context) => {
  const create = (config: object) => createPolicyCore({ modelDir: makeModelDir(context, config).base });
  await assert.rejects(create({ model_type: 'llama' }), refusal('invalid-model-dir', /model_type/));
  const missing = createPolicyCore({ modelDir: '/nowhere' });
  await assert.rejects(missing, refusal('invalid-model-dir', /config.json/));
  const { base } = makeModelDir(context);
  const tooLong = createPolicyCore({ modelDir: base, contextLength: 97 });
  await assert.rejects(tooLong, refusal('invalid-request', /contextLength: expected an integer from 2 to 96, got 97/));
});
