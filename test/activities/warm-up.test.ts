import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { prepareWithPatience } from '../../activities/trainer/prepare.ts';
import { createWarmUpData } from '../../activities/trainer/warm-up-data.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { openJournal, type TrainerJournal, type TrainerState } from '../../infra/trainer/journal.ts';
import { createTinkerTrainer } from '../../infra/trainer/tinker.ts';
import type { Trainer } from '../../infra/trainer/trainer.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { training, warmUp as warmUpInput } from '../../workflows/contracts/run.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { type LimitedTrainer, startLimitedTrainer } from '../helpers/trainer/limited-trainer.ts';
import { modelDir, startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const runKey = '01890000-0000-7000-8000-0123456789ab';
const plenty = 1_000_000;
const seed = 1;
const tasks = 'generated:train/3';
const agent = 'mini';
/** The number of times that the trainer or the worker is killed, each time some steps after a checkpoint. */
const kills = 2;
const stepsAfterwards = 2;

describe('a warm-up', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let limited: LimitedTrainer;
  let trainer: Trainer;
  let root: string;
  let demonstrations: ReturnType<typeof createWarmUpData>;

  before(async () => {
    policy = await startTestPolicy();
    limited = await startLimitedTrainer(policy.url, plenty);
    const checkpointsDir = join(policy.root, 'checkpoints');
    trainer = createTinkerTrainer({ url: limited.url, baseModel: 'policy', reduction: 'sum', checkpointsDir });
    root = await mkdtemp(join(tmpdir(), 'temper-warm-up-'));
    demonstrations = createWarmUpData(modelDir, createFileStore(join(root, 'store')));
  });
  after(async () => {
    trainer?.close();
    await limited?.close();
    await policy?.close();
    await rm(root, { recursive: true, force: true });
  });

  interface Attempt {
    readonly run: string;
    readonly steps: number;
    readonly requestTokens?: number;
    /** Receives each step, and may end the attempt. */
    readonly onStep?: (journal: TrainerJournal, end: AbortController) => void;
  }
  const examplesPerStep = 2;
  /** One activity attempt. */
  async function attempt({ run, steps, requestTokens = plenty, onStep }: Attempt): Promise<TrainerState> {
    const end = new AbortController();
    const journal = await openJournal(createDirectory(join(root, run)), runKey);
    const report = () => onStep?.(journal, end);
    const { signal } = end;
    const context = { trainer, journal, signal, requestTokens, demonstrations, report, checkpointAfterMs: 50 };
    const warmUp = warmUpInput.parse({ steps, examplesPerStep, learningRate: 1e-3 });
    const input = { run, runKey, pool: 'default', seed, tasks, agent, training: training.parse({}), warmUp };
    const log = { info: () => {}, warn: () => {} };
    await asyncLocalStorage.run({ log } as unknown as Context, () => prepareWithPatience(context, input));
    return journal.state;
  }
  async function weightsOf(path: string | undefined): Promise<string | undefined> {
    const model = /^tinker:\/\/([^/]+)\//.exec(path ?? '')?.[1] ?? assert.fail(path);
    return (await policy.received(model)).filter(({ kind }) => kind === 'save_weights').at(-1)?.checksum;
  }

  it('continues from its last checkpoint when trainer and worker are killed, to the weights of an undisturbed one', async () => {
    const steps = 100;
    const killed = new Error('the worker was killed');
    let made = 0;
    let killedAt = 0;
    let restarts = 0;
    let deaths = 0;
    let restarting = Promise.resolve();
    const onStep = ({ state }: TrainerJournal, end: AbortController): void => {
      made += 1;
      const saved = state.warmUpCheckpoints.at(-1)?.step ?? 0;
      if (restarts + deaths === kills || saved <= killedAt || state.warmUpSteps < saved + stepsAfterwards) return;
      killedAt = state.warmUpSteps;
      if (restarts > deaths) {
        deaths += 1;
        end.abort(killed);
      } else {
        restarts += 1;
        restarting = policy.restart();
      }
    };
    let state: TrainerState | null = null;
    while (state === null) {
      state = await attempt({ run: 'killed', steps, onStep }).catch((error: Error) => {
        assert.equal(error, killed);
        return null;
      });
      await restarting;
    }
    assert.ok(restarts > 0 && deaths > 0, `${restarts} restarts, ${deaths} deaths`);
    // Another step may be made before the trainer is away, and one more whose answer is lost.
    assert.ok(made <= steps + restarts * (stepsAfterwards + 2), `${made} steps were made`);
    const undisturbed = await attempt({ run: 'undisturbed', steps });
    assert.equal(await weightsOf(state.checkpoints[0]), await weightsOf(undisturbed.checkpoints[0]));
    assert.deepEqual([state.warmUpCheckpoints, state.sequences], [[], {}]);
    const models = await readdir(join(policy.root, 'checkpoints'));
    const saved = await Promise.all(
      models.map((model) => readdir(join(policy.root, 'checkpoints', model, 'weights')).catch(() => [])),
    );
    assert.ok(
      saved.flat().every((name) => name.endsWith('-v0')),
      'its checkpoints are removed',
    );
  });

  it('passes over a checkpoint that the trainer calls a lost model twice, each time for a fresh one', async () => {
    const killed = new Error('the worker was killed');
    const steps = 60;
    const onStep = ({ state }: TrainerJournal, end: AbortController): void => {
      if (state.warmUpCheckpoints.length > 0) end.abort(killed);
    };
    await assert.rejects(attempt({ run: 'lost', steps, onStep }), killed);
    const journal = await openJournal(createDirectory(join(root, 'lost')), runKey);
    const { warmUpCheckpoints } = journal.state;
    const lost = { step: (warmUpCheckpoints.at(-1)?.step ?? 0) + 1, path: 'tinker://gone/weights/x' };
    await journal.write({ modelId: null, warmUpCheckpoints: [...warmUpCheckpoints, lost] });
    const working = trainer;
    const models: string[] = [];
    const load: Trainer['load'] = (modelId, checkpoint, ...rest) => {
      if (checkpoint.path !== lost.path) return working.load(modelId, checkpoint, ...rest);
      models.push(modelId);
      return Promise.reject(new TemperFailure('TrainerLostModel', 'model gone not found'));
    };
    trainer = { ...working, load };
    try {
      const { checkpoints } = await attempt({ run: 'lost', steps });
      assert.equal(new Set(models).size, 2);
      assert.equal(models.length, 2);
      const undisturbed = await attempt({ run: 'not-lost', steps });
      assert.equal(await weightsOf(checkpoints[0]), await weightsOf(undisturbed.checkpoints[0]));
    } finally {
      trainer = working;
    }
  });

  it('continues in smaller requests when the trainer ran out of memory', async () => {
    const steps = 3;
    const request = { tasks, agent, seed, count: examplesPerStep, rightShare: warmUpInput.parse({ steps }).rightShare };
    const data = await Promise.all([0, 1, 2].map((step) => demonstrations({ ...request, step, traces: null })));
    limited.memoryTokens = Math.max(...data.flat().map(({ tokens }) => tokens.length));
    await assert.rejects(attempt({ run: 'divided', steps }), { type: 'TrainerRefused', message: /out of memory/ });
    const divided = await attempt({ run: 'divided', steps, requestTokens: limited.memoryTokens });
    limited.memoryTokens = plenty;
    const whole = await attempt({ run: 'whole', steps });
    assert.equal(await weightsOf(divided.checkpoints[0]), await weightsOf(whole.checkpoints[0]));
  });
});
