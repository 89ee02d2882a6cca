import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import type { TrainerContext } from '../../activities/trainer/dependencies.ts';
import { modelAt } from '../../activities/trainer/model.ts';
import { unloadEndedRuns } from '../../activities/trainer/unload.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import { openJournal, type TrainerJournal } from '../../infra/trainer/journal.ts';
import { createTinkerTrainer } from '../../infra/trainer/tinker.ts';
import type { Trainer } from '../../infra/trainer/trainer.ts';
import { training } from '../../workflows/contracts/run.ts';
import { createFileStore } from '../helpers/store/file-store.ts';
import { startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const never = new AbortController().signal;
const datum = { tokens: [5, 6, 7], targets: [6, 7, 8], weights: [1, 1, 1] };

describe('the trainer', () => {
  let policy: Awaited<ReturnType<typeof startTestPolicy>>;
  let trainer: Trainer;
  let root: string;
  const newModel = async (journal: TrainerJournal): Promise<string> => {
    const modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
    await journal.nextSequence(modelId);
    return modelId;
  };
  const isLoaded = (modelId: string): Promise<boolean> =>
    trainer.forwardBackward({ modelId, sequence: 100, data: [datum], loss: 'cross_entropy', forwardOnly: true }).then(
      () => true,
      (error) => {
        assert.equal(error.type, 'TrainerLostModel');
        return false;
      },
    );

  before(async () => {
    policy = await startTestPolicy();
    trainer = policy.trainer();
    root = await mkdtemp(join(tmpdir(), 'temper-unload-'));
  });
  after(async () => {
    trainer?.close();
    await policy?.close();
    await rm(root, { recursive: true, force: true });
  });

  it('unloads the models of runs that have ended when another one prepares, but none of open runs', async () => {
    const journals = createDirectory(join(root, 'runs'));
    const earlier = await openJournal(journals, 'earlier');
    const [live, reference, lost] = [await newModel(earlier), await newModel(earlier), await newModel(earlier)];
    await earlier.write({ modelId: live, referenceId: reference });
    const next = await openJournal(journals, 'next');
    const own = await newModel(next);
    await next.write({ modelId: own });
    const other = await openJournal(journals, 'other');
    const theirs = await newModel(other);
    const dependencies = {
      journals,
      usedPolicies: async () => new Set(['other', 'next']),
      ofRun: async () => ({ trainer, engines: [], publish: 'reload' as const }),
    };
    await unloadEndedRuns(dependencies, 'next', never);
    await unloadEndedRuns(dependencies, 'next', never);
    assert.deepEqual(await Promise.all([live, reference, lost, own, theirs].map(isLoaded)), [
      false,
      false,
      false,
      true,
      true,
    ]);
    const { state } = await openJournal(journals, 'earlier');
    assert.deepEqual([state.modelId, state.referenceId, state.sequences], [null, null, {}]);
    assert.equal((await openJournal(journals, 'next')).state.modelId, own);
  });

  it('is waited for only for a while where it hangs, so that it holds up no run of another pool', async () => {
    let asked = 0;
    const hanging = createServer((socket) => {
      asked += 1;
      socket.on('error', () => undefined).resume();
    });
    hanging.listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const { port } = hanging.address() as AddressInfo;
    const hung = createTinkerTrainer({
      url: `http://127.0.0.1:${port}`,
      baseModel: 'policy',
      reduction: 'sum',
      checkpointsDir: root,
    });
    try {
      const journals = createDirectory(join(root, 'hung'));
      for (const run of ['a', 'c']) {
        const journal = await openJournal(journals, run);
        await journal.write({ pool: 'hung', sequences: { [`${run}-1`]: 1, [`${run}-2`]: 1 } });
      }
      const healthy = await openJournal(journals, 'b');
      const model = await newModel(healthy);
      const dependencies = {
        journals,
        usedPolicies: async () => new Set<string>(),
        ofRun: async ({ pool }: { readonly pool?: string | undefined }) => ({
          trainer: pool === 'hung' ? hung : trainer,
          engines: [],
          publish: 'reload' as const,
        }),
        limitMs: 200,
      };
      const log = { warn: () => undefined };
      // What is logged there belongs to an activity.
      await asyncLocalStorage.run({ log } as unknown as Context, () => unloadEndedRuns(dependencies, 'next', never));
      assert.equal(asked, 1);
      assert.equal(await isLoaded(model), false);
      assert.deepEqual(Object.keys((await openJournal(journals, 'a')).state.sequences), ['a-1', 'a-2']);
    } finally {
      hung.close();
      hanging.close();
    }
  });

  it('unloads the live model when its run returns to an earlier checkpoint, but not the reference', async () => {
    const journal = await openJournal(createDirectory(join(root, 'back')), 'back');
    const ahead = await newModel(journal);
    const path = await trainer.save(ahead, 'v0', await journal.nextSequence(ahead));
    const reference = await newModel(journal);
    const update = {
      data: '',
      modelId: ahead,
      forwardSequence: 1,
      optimSequence: 2,
      sizes: [1],
      learningRate: 0,
      batch: '',
    };
    const updates = { 1: { ...update, metrics: {} } };
    await journal.write({ modelId: ahead, referenceId: reference, step: 1, checkpoints: { 0: path }, updates });
    const context: TrainerContext = {
      trainer,
      store: createFileStore(join(root, 'store')),
      engines: [],
      journals: createDirectory(root),
      requestTokens: 1,
      publish: 'reload',
      pinnedVersions: async () => [],
      usedPolicies: async () => new Set(),
      demonstrations: async () => [],
      journal,
      signal: never,
    };
    const back = await modelAt(context, { step: 0, lastUpdate: 0 }, training.parse({}));
    assert.notEqual(back, ahead);
    assert.deepEqual(await Promise.all([ahead, reference, back].map(isLoaded)), [false, true, true]);
  });
});
