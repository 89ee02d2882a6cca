import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { createTinkerTrainer } from '../../infra/trainer/tinker.ts';
import type { Trainer } from '../../infra/trainer/trainer.ts';
import { type FailureForm, type LimitedTrainer, startLimitedTrainer } from '../helpers/trainer/limited-trainer.ts';
import { type Conversation, createSmallRun, type SmallRun } from '../helpers/trainer/small-run.ts';
import { startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const plenty = 1_000_000;
const forms: readonly FailureForm[] = ['error', 'error-in-200', 'unknown-error'];

describe('an update that the trainer failed at', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let limited: LimitedTrainer;
  let root: string;
  let runs = 0;
  const clients: Trainer[] = [];

  before(async () => {
    policy = await startTestPolicy();
    limited = await startLimitedTrainer(policy.url, plenty);
    root = await mkdtemp(join(tmpdir(), 'temper-failed-update-'));
  });
  after(async () => {
    for (const client of clients) client.close();
    await limited?.close();
    await policy?.close();
    await rm(root, { recursive: true, force: true });
  });

  const clientOf = (): Trainer => {
    const checkpointsDir = join(policy.root, 'checkpoints');
    const client = createTinkerTrainer({ url: limited.url, baseModel: 'policy', reduction: 'sum', checkpointsDir });
    clients.push(client);
    return client;
  };
  async function newRun(training: object = {}, requestTokens = plenty): Promise<SmallRun> {
    limited.memoryTokens = plenty;
    limited.metrics = null;
    limited.form = 'error';
    const run = createSmallRun({ root: join(root, String(++runs)), trainer: clientOf(), training, requestTokens });
    await run.prepare();
    return run;
  }
  /** The checksums of the weights after each optimizer step of the run's models, by the step. */
  async function stepsOf(run: SmallRun): Promise<Map<number, string[]>> {
    const models = Object.keys((await run.journal()).state.sequences);
    const made = new Map<number, string[]>();
    for (const { kind, step, checksum } of (await Promise.all(models.map(policy.received))).flat()) {
      if (kind === 'optim_step') made.set(step, [...(made.get(step) ?? []), checksum]);
    }
    return made;
  }
  const lastWeights = async (run: SmallRun, step: number): Promise<string | undefined> =>
    (await stepsOf(run)).get(step)?.at(-1);

  const token = fc.integer({ min: 5, max: 200 });
  // All conversations of a run have one length, so that there is memory for each one, and for no two.
  const batchesOf = (length: number) => {
    const conversation = fc.array(token, { minLength: length, maxLength: length });
    return fc.array(fc.array(conversation, { minLength: 2, maxLength: 4 }), { minLength: 2, maxLength: 3 });
  };
  const story = fc.record({
    batches: fc.integer({ min: 4, max: 12 }).chain(batchesOf),
    fails: fc.nat({ max: 2 }),
    form: fc.constantFrom(...forms.slice(0, 2)),
    checkpointEvery: fc.integer({ min: 1, max: 3 }),
    klCoef: fc.constantFrom(0, 0.1),
    restarts: fc.boolean(),
  });

  it('is made once after a lower limit of requests, and leaves the weights of a run without the failure', async () => {
    const property = fc.asyncProperty(story, async ({ batches, fails, form, checkpointEvery, klCoef, restarts }) => {
      const longest = Math.max(...batches.flat().map(({ length }) => length - 1));
      const failing = Math.min(fails, batches.length - 1) + 1;
      const run = await newRun({ checkpointEvery, klCoef });
      for (const [index, conversations] of batches.entries()) {
        const step = index + 1;
        if (step === failing) {
          Object.assign(limited, { memoryTokens: longest, form });
          const failed = { type: 'TrainerRefused', message: /out of memory/ };
          await assert.rejects(run.update(step, conversations), failed);
          await assert.rejects(run.update(step, conversations), failed);
          run.requestTokens = longest;
          if (restarts) await policy.restart();
        }
        await run.update(step, conversations);
      }
      const undisturbed = await newRun({ checkpointEvery, klCoef });
      for (const [index, conversations] of batches.entries()) await undisturbed.update(index + 1, conversations);
      const last = batches.length;
      const weights = await lastWeights(run, last);
      assert.ok(weights !== undefined);
      assert.equal(weights, await lastWeights(undisturbed, last));
      if (!restarts) assert.equal((await stepsOf(run)).get(failing)?.length, 1, 'one optim_step');
    });
    await fc.assert(property, { numRuns: 4, endOnFailure: true });
  });

  const two: readonly Conversation[] = [
    [5, 6, 7, 8, 9, 10],
    [11, 12, 13, 14, 15, 16],
  ];
  for (const form of forms) {
    it(`is made under new numbers once the trainer has more memory, if the failure was ${form}`, async () => {
      const run = await newRun();
      Object.assign(limited, { memoryTokens: 8, form });
      await assert.rejects(run.update(1, two), { type: 'TrainerRefused' });
      limited.memoryTokens = plenty;
      await run.update(1, two);
      assert.equal((await stepsOf(run)).get(1)?.length, 1);
    });
  }

  it('can be skipped, and the next step continues from the weights before it', async () => {
    const run = await newRun();
    await run.update(1, two);
    limited.memoryTokens = 4;
    run.requestTokens = 5;
    await assert.rejects(run.update(2, two), { type: 'TrainerRefused' });
    await run.skip(2);
    limited.memoryTokens = plenty;
    await run.update(3, two, 1);
    const { updates, checkpoints } = (await run.journal()).state;
    assert.deepEqual(
      [Object.keys(updates), Object.keys(checkpoints)],
      [
        ['1', '3'],
        ['0', '1', '3'],
      ],
    );
    const undisturbed = await newRun();
    await undisturbed.update(1, two);
    await undisturbed.update(3, two, 1);
    assert.equal(await lastWeights(run, 2), await lastWeights(undisturbed, 2));
  });

  it('is not skipped once it was made', async () => {
    const run = await newRun();
    await run.update(1, two);
    await assert.rejects(run.skip(1), { type: 'TrainerRefused', message: /step 1: its update is made/ });
  });

  for (const metrics of ['{"grad_norm":1e999}', '{"loss":-1e999,"grad_norm":1}', '{"grad_norm":NaN}']) {
    it(`is refused before its checkpoint if the trainer reports ${metrics}`, async () => {
      const run = await newRun();
      await run.update(1, two);
      const before = await run.journal();
      limited.metrics = metrics;
      await assert.rejects(run.update(2, two), { type: 'TrainerRefused', message: /Infinity|NaN/ });
      const { state } = await run.journal();
      assert.deepEqual(Object.keys(state.checkpoints), ['0', '1']);
      assert.equal(state.updates[2]?.metrics, null);
      assert.equal(state.modelId, null, 'the model is rolled back');
      limited.metrics = null;
      await run.skip(2);
      await run.update(3, two, 1);
      const undisturbed = await newRun();
      await undisturbed.update(1, two);
      await undisturbed.update(3, two, 1);
      assert.equal(await lastWeights(run, 2), await lastWeights(undisturbed, 2));
      assert.ok(before.state.updates[1]?.metrics);
    });
  }
});
