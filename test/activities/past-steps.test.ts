import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { applyUpdate, type ModelContext, modelAt, updateSequences } from '../../activities/trainer/model.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { type JournaledUpdate, openJournal, type TrainerJournal } from '../../infra/trainer/journal.ts';
import { stepsTogether } from '../../infra/trainer/past-steps.ts';
import type { Trainer } from '../../infra/trainer/trainer.ts';
import { training as trainingInput } from '../../workflows/contracts/run.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const signal = new AbortController().signal;
const training = trainingInput.parse({ checkpointEvery: 50 });
const steps = 2 * stepsTogether + 30;

describe("the trainer's journal of a long run", () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  let root: string;
  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
    root = await mkdtemp(join(tmpdir(), 'temper-past-steps-'));
  });
  after(async () => {
    trainer?.close();
    await policy?.close();
    await rm(root, { recursive: true, force: true });
  });

  const journalIn = (directory: string): Promise<TrainerJournal> =>
    openJournal(createDirectory(join(root, directory)), 'run');
  const update: JournaledUpdate = {
    data: 'a'.repeat(64),
    modelId: 'model',
    forwardSequence: 1,
    optimSequence: 2,
    sizes: [1],
    learningRate: 0,
    batch: 'b'.repeat(64),
    metrics: {},
  };
  /** Journals a step as the trainer worker does; every third has a checkpoint, and every seventh no batch. */
  async function journalStep(journal: TrainerJournal, step: number): Promise<void> {
    const { checkpoints, updates } = journal.state;
    if (step % 3 === 0) await journal.write({ checkpoints: { ...checkpoints, [step]: `path-${step}` } });
    if (step % 7 === 0) return;
    await journal.write({ step, updates: { ...updates, [step]: { ...update, forwardSequence: step } } });
  }

  it('holds the last steps, and finds every other one in documents beside it', async () => {
    const journal = await journalIn('many');
    await journal.write({ checkpoints: { 0: 'path-0' } });
    for (let step = 1; step <= 400; step += 1) await journalStep(journal, step);
    const reopened = await journalIn('many');
    assert.ok(Object.keys(reopened.state.updates).length <= 2 * stepsTogether);
    assert.ok((await stat(join(root, 'many/trainer/run.json'))).size < 2 * stepsTogether * 300);
    const numbers = Array.from({ length: 400 }, (_, index) => index + 1);
    const { updates, checkpoints } = await reopened.steps(1, 400);
    assert.deepEqual(
      Object.keys(updates).map(Number),
      numbers.filter((step) => step % 7 !== 0),
    );
    assert.deepEqual(Object.keys(checkpoints).map(Number), [0, ...numbers.filter((step) => step % 3 === 0)]);
    for (const step of [1, 2, 6, 7, 64, 65, 127, 128, 129, 320, 399, 400]) {
      assert.equal(await reopened.lastCheckpoint(step), step - (step % 3), `checkpoint of step ${step}`);
      assert.equal(await reopened.lastUpdate(step), step % 7 === 0 ? step - 1 : step, `update of step ${step}`);
      const own = (await reopened.steps(step, step)).updates[step];
      assert.equal(own?.forwardSequence, step % 7 === 0 ? undefined : step);
    }
  });

  it('continues when a worker was killed after it had written past steps and before the journal', async () => {
    const journal = await journalIn('killed');
    await journal.write({ checkpoints: { 0: 'path-0' } });
    for (let step = 1; journal.state.past === 0; step += 1) await journalStep(journal, step);
    const before = await journal.steps(1, 200);
    const old = { ...journal.state, ...before, past: 0 };
    await writeFile(join(root, 'killed/trainer/run.json'), JSON.stringify(old));
    const again = await journalIn('killed');
    await again.write({ warmUpSteps: 1 });
    assert.equal(again.state.past, 1);
    assert.deepEqual(await again.steps(1, 200), before);
  });

  it('loads the checkpoint of any step, also of one long past, with the weights that the model had', async () => {
    const journal = await journalIn('trained');
    const store = createFileStore(join(root, 'store'));
    const context: ModelContext = { trainer, store, journal, signal, requestTokens: 1_000 };
    const first = await trainer.createModel({ loraRank: 1, seed: 0 });
    const path = await trainer.save(first, 'v0', await journal.nextSequence(first));
    await journal.write({ prepared: true, checkpoints: { 0: path } });
    const modelId = await modelAt(context, { step: 0, lastUpdate: 0 }, training);
    for (let step = 1; step <= steps; step += 1) {
      const data = [
        { tokens: [step, 6, 7], targets: [6, 7, 8], weights: [1, 1, 1], logprobs: [0, 0, 0], advantages: [1, 1, 1] },
      ];
      const sequences = await updateSequences(journal, modelId, [1]);
      const learningRate = 1e-3;
      const metrics = await applyUpdate(trainer, { modelId, data, sequences, learningRate, training, signal });
      const { digest } = await store.putJson(data);
      const done: JournaledUpdate = { ...update, data: digest, modelId, ...sequences, learningRate, metrics };
      if (step % training.checkpointEvery === 0) {
        const saved = await trainer.save(modelId, `v${step}`, await journal.nextSequence(modelId));
        await journal.write({ checkpoints: { ...journal.state.checkpoints, [step]: saved } });
      }
      await journal.write({ step, updates: { ...journal.state.updates, [step]: done } });
    }
    assert.equal(journal.state.past, 1);
    const original = await policy.received(modelId);
    await journal.write({ modelId: null });
    for (const step of [100, 50]) {
      const again = await modelAt(context, { step, lastUpdate: step }, training);
      const loaded = (await policy.received(again)).find(({ kind }) => kind === 'load_weights');
      const made = original.find((one) => one.kind === 'optim_step' && one.step === step);
      assert.ok(made !== undefined);
      assert.equal(loaded?.checksum, made.checksum, `weights of step ${step}`);
    }
  });
});
