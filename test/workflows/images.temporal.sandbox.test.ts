import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { BuildFailure, SandboxFailure } from '../../infra/sandbox/failure.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { until } from '../helpers/until.ts';

const toml = (image: string): string =>
  `version = "1.0"\n[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 20.0\n[environment]\ndocker_image = "${image}"\n`;

describe('the image of a rollout', () => {
  let rollouts: Rollouts;
  /** What fetching an image does, by its name; local sandboxes need none. */
  const fetching = new Map<string, SandboxProvider['prepare']>();
  const addressOf = (image: string): Promise<string> =>
    writeHarborTask(join(rollouts.home, 'tasks'), image.replaceAll(/\W/g, '-'), { toml: toml(image) });
  const run = async (image: string) =>
    rollouts.run(image, { task: await addressOf(image), agent: 'oracle', sandbox: 'auto' });

  before(async () => {
    rollouts = await startRollouts((home) => {
      const local = createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack' });
      const prepare: SandboxProvider['prepare'] = (request, report, signal) =>
        (fetching.get(request.image) ?? local.prepare)(request, report, signal);
      return { taskRoots: [join(home, 'tasks')], provider: { ...local, prepare }, capacity: 1 };
    });
  });
  after(() => rollouts?.close());

  it('is no stage where nobody has it but the host, and one of its own where a registry does', async () => {
    const shipped = await run('temper-tasks:bookworm');
    assert.deepEqual([shipped.outcome, shipped.stageSeconds.prepareImage], ['scored', undefined]);
    const fetched = await run('registry.example/some:1');
    assert.equal(fetched.outcome, 'scored', JSON.stringify(fetched.failure));
    assert.equal(typeof fetched.stageSeconds.prepareImage, 'number');
  });

  it('is asked for again when the registry is away, and takes no place meanwhile', async () => {
    const image = 'registry.example/slow:1';
    const arrived = Promise.withResolvers<void>();
    let tries = 0;
    fetching.set(image, async (_, report) => {
      tries += 1;
      if (tries === 1) throw new SandboxFailure('ImageUnavailable', 'the registry is away');
      report({ image, doing: 'pulling', layers: '1/3', megabytes: '10.0/99.0' });
      await arrived.promise;
      return image;
    });
    const handle = await rollouts.start('slow', { task: await addressOf(image), agent: 'oracle' });
    const [progress] = await until(async () => {
      const { raw } = await handle.describe();
      const [beat] = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads ?? [];
      return beat?.data ? [JSON.parse(Buffer.from(beat.data).toString())] : null;
    });
    assert.deepEqual(progress, { image, doing: 'pulling', layers: '1/3', megabytes: '10.0/99.0' });
    // The host has room for one: another rollout has it.
    assert.equal((await run('registry.example/there:1')).outcome, 'scored');
    arrived.resolve();
    assert.equal((await handle.result()).outcome, 'scored');
    assert.ok(tries >= 2);
  });

  it('that can not be built ends the rollout by name, before it has a place, and its log is kept', async () => {
    const image = 'registry.example/broken:1';
    fetching.set(image, async () => {
      throw new BuildFailure('environment/Dockerfile of task x: expected an image', Buffer.from('Step 1/2\nbad\n'));
    });
    const { outcome, failure, stageSeconds } = await run(image);
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'BuildFailed', 'prepareImage']);
    assert.equal(stageSeconds.placeRollout, undefined);
    const [, digest = ''] = /its log is blob ([0-9a-f]{64})$/.exec(failure?.message ?? '') ?? [];
    assert.equal(String(await rollouts.store.get(digest)), 'Step 1/2\nbad\n');
  });

  it('that went away behind its stage is fetched again by those that need it', async () => {
    const image = 'registry.example/evicted:1';
    const askers: string[] = [];
    fetching.set(image, async ({ task }) => {
      askers.push(task);
      return image;
    });
    assert.equal((await run(image)).outcome, 'scored');
    assert.equal(askers.length, 3);
  });
});
