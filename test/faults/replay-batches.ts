import assert from 'node:assert/strict';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { applyUpdate } from '../../activities/trainer/model.ts';
import { startPolicyServer } from '../../infra/kits/embedded-policy/index.ts';
import type { Config } from '../../infra/settings/config.ts';
import { createDirectory } from '../../infra/store/directory.ts';
import type { Objects } from '../../infra/store/objects.ts';
import { createStore } from '../../infra/store/store.ts';
import { openJournal } from '../../infra/trainer/journal.ts';
import { createTinkerTrainer } from '../../infra/trainer/tinker.ts';
import type { Datum } from '../../infra/trainer/trainer.ts';
import { type RunRequest, training } from '../../workflows/contracts/run.ts';
import { digestsOf, lastChecksum, receivedBy, receivedFrom } from './received.ts';

/** A run of an embedded policy that is done. */
export interface FinishedRun {
  readonly config: Config;
  readonly runKey: string;
  /** The number of its steps, each of which made an update. */
  readonly steps: number;
  readonly training: RunRequest['training'];
  /** The place of what the stack shares; default: the home. */
  readonly objects?: Objects;
}

/**
 * Replays the pinned batches of a run on a fresh policy server, from the checkpoint of step 0. Asserts that the server receives
 * the same bytes as the run's own did, and ends with byte-identical weights. Returns the number of requests.
 */
export async function assertReplaysIdentically(run: FinishedRun): Promise<number> {
  const { config, runKey, steps, objects = createDirectory(config.home) } = run;
  const journal = await openJournal(objects, runKey);
  const { updates, checkpoints } = await journal.steps(1, steps);
  const original = await receivedBy(config);
  const store = createStore(objects);
  const settings = training.parse(run.training ?? {});
  const root = join(config.home, 'fresh');
  const server = await startPolicyServer({ port: 0, modelDir: config.modelDir, root });
  try {
    const trainer = createTinkerTrainer({
      url: server.url,
      baseModel: 'policy',
      reduction: 'sum',
      checkpointsDir: join(root, 'checkpoints'),
      engineCheckpointsDir: join(root, 'checkpoints'),
    });
    const signal = AbortSignal.timeout(600_000);
    const start = await copyCheckpoint(config, root, checkpoints[0]);
    const modelId = await trainer.createModel({ loraRank: settings.loraRank, seed: 0 }, signal);
    await trainer.load(modelId, { path: start, optimizer: false }, 1, signal);
    let sequence = 1;
    for (let step = 1; step <= steps; step += 1) {
      const update = updates[step] ?? assert.fail(`step ${step} made no update`);
      const data = (await store.getJson(update.data)) as Datum[];
      const { learningRate, sizes = [data.length] } = update;
      const optimSequence = sequence + sizes.length + 1;
      const sequences = { forwardSequence: sequence + 1, optimSequence, sizes };
      sequence = optimSequence;
      await applyUpdate(trainer, { modelId, data, sequences, learningRate, training: settings, signal });
    }
    const replayed = await receivedFrom(join(root, 'received.jsonl'));
    const sent = Object.values(updates).flatMap((update) => digestsOf(original, update));
    assert.deepEqual(
      replayed.filter(({ kind }) => kind === 'forward_backward').map(({ digest }) => digest),
      sent,
    );
    const final = replayed.filter(({ kind }) => kind === 'optim_step').at(-1)?.checksum;
    assert.equal(final, lastChecksum(original, updates[steps]));
    return sent.length;
  } finally {
    await server.close();
  }
}

/** Copies the checkpoint `tinker://<model>/weights/<name>` of one server to another. */
async function copyCheckpoint(config: Config, root: string, address: string | undefined): Promise<string> {
  const model = /^tinker:\/\/([^/]+)\//.exec(address ?? '')?.[1];
  assert.ok(model && address);
  await cp(join(config.paths.policy, 'checkpoints', model), join(root, 'checkpoints', model), { recursive: true });
  return address;
}
