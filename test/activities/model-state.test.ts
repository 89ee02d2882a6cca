import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Trainer } from '../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { type Conversation, createSmallRun, runKey, type SmallRun } from '../helpers/trainer/small-run.ts';
import { startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const conversations: readonly Conversation[] = [
  [5, 6, 7, 8, 9, 10],
  [11, 12, 13, 14, 15, 16],
];

describe('the state of a run’s model', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  let root: string;
  let runs = 0;

  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
    root = await mkdtemp(join(tmpdir(), 'temper-model-state-'));
  });
  after(async () => {
    trainer?.close();
    await policy?.close();
    await rm(root, { recursive: true, force: true });
  });

  const directory = (): string => join(root, String(runs));
  async function newRun(steps: number, training: object = {}): Promise<SmallRun> {
    runs += 1;
    const engines = [policy.engine()];
    const run = createSmallRun({ root: directory(), trainer, engines, training, requestTokens: 1_000 });
    await run.prepare();
    for (let step = 1; step <= steps; step += 1) await run.update(step, conversations);
    return run;
  }
  /** Cuts the last step from the journal, as a store does that was restored from an earlier time. */
  async function cut(run: SmallRun, step: number): Promise<void> {
    const { state } = await run.journal();
    const { [step]: _, ...updates } = state.updates;
    const { [step]: __, ...checkpoints } = state.checkpoints;
    const older = { ...state, updates, checkpoints, step: step - 1, modelId: null };
    await writeFile(join(directory(), 'trainer', `${runKey}.json`), JSON.stringify(older));
  }
  /** Forgets the live model, as when the trainer has lost it. */
  const forget = async (run: SmallRun): Promise<void> => (await run.journal()).write({ modelId: null });
  async function weightsOf(run: SmallRun, kind: string): Promise<string | undefined> {
    const { modelId } = (await run.journal()).state;
    return (await policy.received(modelId ?? '')).filter((entry) => entry.kind === kind).at(-1)?.checksum;
  }

  it('is refused by name if the journal ends before the last step that the run has trained', async () => {
    const run = await newRun(2);
    await cut(run, 2);
    const failure = {
      type: 'JournalMismatch',
      message: /expected an update of step 2 as the last one up to step 2, got an update of step 1/,
    };
    await assert.rejects(run.update(3, conversations), failure);
    await assert.rejects(run.publish(2), failure);
    assert.deepEqual(Object.keys((await run.journal()).state.updates), ['1'], 'nothing was trained');
  });

  it('is refused by name if the journal has an update that the run has not made', async () => {
    const run = await newRun(2);
    await assert.rejects(run.update(3, conversations, 1), {
      type: 'JournalMismatch',
      message: /expected an update of step 1 as the last one up to step 2, got an update of step 2/,
    });
  });

  it('is refused by name if the journal is lost', async () => {
    const run = await newRun(1);
    await rm(join(directory(), 'trainer'), { recursive: true });
    await assert.rejects(run.update(2, conversations), { type: 'JournalMismatch', message: /got no update/ });
    await assert.rejects(run.update(1, conversations), { type: 'JournalMismatch', message: /a checkpoint of step 0/ });
  });

  it('is that of the pinned batches if the newest checkpoints do not load', async () => {
    const run = await newRun(3);
    const weights = await weightsOf(run, 'optim_step');
    const { checkpoints } = (await run.journal()).state;
    for (const step of [2, 3]) {
      const [, model, name] = /^tinker:\/\/(.+)\/weights\/(.+)$/.exec(checkpoints[step] ?? '') ?? [];
      await rm(join(policy.root, 'checkpoints', String(model), 'weights', String(name)), { recursive: true });
    }
    await policy.restart();
    await run.update(4, conversations).catch(() => run.update(4, conversations));
    const { modelId, sequences } = (await run.journal()).state;
    const made = (await policy.received(modelId ?? '')).filter(({ kind }) => kind === 'optim_step');
    assert.deepEqual(
      made.map(({ step }) => step),
      [2, 3, 4],
    );
    assert.equal(made[1]?.checksum, weights);
    assert.deepEqual(Object.keys(sequences), [modelId], 'the models that did not load are unloaded');
  });

  it('is refused by name if none of the last three checkpoints loads', async () => {
    const run = await newRun(3);
    await forget(run);
    const loaded: string[] = [];
    run.trainer = {
      ...trainer,
      load: (_, { path }) => {
        loaded.push(path);
        return Promise.reject(new TemperFailure('TrainerRefused', `${path} is no checkpoint`));
      },
    };
    await assert.rejects(run.update(4, conversations), {
      type: 'TrainerRefused',
      message: /^no checkpoint of the steps 3, 2, 1 loads: .*-v3 is no checkpoint; check the trainer/,
    });
    assert.equal(loaded.length, 3);
  });

  it('is that of the newest checkpoint as soon as the trainer answers again, if it was away while an older one was loaded', async () => {
    const run = await newRun(2);
    await forget(run);
    const away = new TemperFailure('TrainerUnavailable', 'the trainer does not answer');
    const failures = [new TemperFailure('TrainerRefused', 'the disk was full'), away];
    run.trainer = { ...trainer, load: () => Promise.reject(failures.shift() ?? assert.fail()) };
    await assert.rejects(run.update(3, conversations), away);
  });

  it('never holds an update under way when the version before it is published again', async () => {
    const run = await newRun(1);
    await run.publish(1);
    const served = await policy.score([5, 6, 7, 8, 9, 10]);
    // The optimizer has made its step, and the checkpoint is not saved.
    const away = new TemperFailure('TrainerUnavailable', 'the trainer does not answer');
    run.trainer = { ...trainer, save: () => Promise.reject(away) };
    await assert.rejects(run.update(2, conversations), away);
    run.trainer = trainer;
    await policy.engine().publish({ version: 9, name: 'other', path: await basePath(), method: 'reload' });
    await run.publish(1);
    assert.deepEqual(await policy.score([5, 6, 7, 8, 9, 10]), served);
    await run.update(2, conversations);
    await run.publish(2);
    const undisturbed = await newRun(2);
    assert.equal(await weightsOf(run, 'optim_step'), await weightsOf(undisturbed, 'optim_step'));
  });

  /** Saves other weights, so that an engine that serves them lacks those of the run. */
  async function basePath(): Promise<string> {
    const modelId = await trainer.createModel({ loraRank: 1, seed: 7 });
    return trainer.saveForSampler(modelId, 'other', 1);
  }
});
