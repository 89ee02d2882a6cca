import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHelperSpawner } from '../../infra/process/spawner/through-helper.ts';
import { BuildFailure, SandboxFailure } from '../../infra/sandbox/failure.ts';
import type { ImageProgress } from '../../infra/sandbox/image.ts';
import { createLocalProvider } from '../../infra/sandbox/local/provider.ts';
import type { SandboxOrder, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { imageInProgress } from '../../workers/cli/follow/image-in-progress.ts';
import { hasFailed, repeatedText, repeatedWork } from '../../workers/cli/follow/repeated-work.ts';
import { trainAllBranches } from '../../workflows/contracts/trace.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { writeHarborTask } from '../helpers/tasks/harbor-task.ts';
import { until } from '../helpers/until.ts';

const toml = (image: string): string =>
  `version = "1.0"\n[agent]\ntimeout_sec = 300.0\n[verifier]\ntimeout_sec = 120.0\n[environment]\ndocker_image = "${image}"\n`;

describe('the image of a rollout', () => {
  let rollouts: Rollouts;
  /** Replacements for the fetching of an image, by its name. Local sandboxes need no image. */
  const fetching = new Map<string, SandboxProvider['prepare']>();
  /** Steps before a sandbox is there, by the name of its image. */
  const arriving = new Map<string, (order: SandboxOrder) => Promise<void>>();
  /** Images that the host has lost by the time it places a rollout, and those that it was asked for. */
  const lacking = new Set<string>();
  const asked: string[] = [];
  const addressOf = (image: string): Promise<string> =>
    writeHarborTask(join(rollouts.home, 'tasks'), image.replaceAll(/\W/g, '-'), { toml: toml(image) });
  const run = async (image: string) =>
    rollouts.run(image, { task: await addressOf(image), agent: 'oracle', sandbox: 'auto' });

  before(async () => {
    rollouts = await startRollouts((home) => {
      const local = createLocalProvider({
        root: join(home, 'sandboxes'),
        stack: 'test-stack',
        spawner: createHelperSpawner(),
      });
      const prepare: SandboxProvider['prepare'] = (request, report, signal) =>
        (fetching.get(request.image) ?? local.prepare)(request, report, signal);
      const hasImage = async (image: string): Promise<boolean> => {
        asked.push(image);
        return !lacking.has(image);
      };
      const ensure: SandboxProvider['ensure'] = async (order, signal) => {
        await arriving.get(order.image)?.(order);
        return local.ensure(order, signal);
      };
      return { taskRoots: [join(home, 'tasks')], provider: { ...local, prepare, ensure }, capacity: 1, hasImage };
    });
  });
  after(() => rollouts?.close());

  it('is fetched in a separate stage, but only if a registry may have it', async () => {
    const shipped = await run('temper-tasks:bookworm');
    assert.deepEqual([shipped.outcome, shipped.stageSeconds.prepareImage], ['scored', undefined]);
    const fetched = await run('registry.example/some:1');
    assert.equal(fetched.outcome, 'scored', JSON.stringify(fetched.failure));
    assert.equal(typeof fetched.stageSeconds.prepareImage, 'number');
  });

  it('is requested again after the registry was unavailable, without a slot meanwhile', async () => {
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
    const progress = await until(async () => imageInProgress({ description: await handle.describe() }) ?? null);
    assert.deepEqual(progress, { image, doing: 'pulling', layers: '1/3', megabytes: '10.0/99.0' });
    const [again] = repeatedWork({ description: await handle.describe() });
    assert.ok(again !== undefined && hasFailed(again));
    assert.equal(repeatedText(again), 'prepareImage is at attempt 2 after ImageUnavailable: the registry is away');
    // The host has one slot, which another rollout takes meanwhile.
    assert.equal((await run('registry.example/there:1')).outcome, 'scored');
    arrived.resolve();
    assert.equal((await handle.result()).outcome, 'scored');
    assert.ok(tries >= 2);
  });

  it('is shown while the node of a sandbox pulls it, for the agent and for its evaluation, and no longer', async () => {
    const image = 'registry.example/remote:1';
    const waits = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let sandboxes = 0;
    arriving.set(image, async ({ labels, report }) => {
      const progress = { image, doing: 'pulling', since: new Date(sandboxes * 60_000).toISOString() } as const;
      sandboxes += 1;
      report?.(progress);
      await waits[labels.purpose === 'agent' ? 0 : 1]?.promise;
      report?.({ image, doing: 'ready' });
    });
    const handle = await rollouts.start('remote', { task: await addressOf(image), agent: 'oracle' });
    const shown = async (): Promise<ImageProgress | undefined> =>
      imageInProgress({ description: await handle.describe() });
    // The moment between the two pulls may be shorter than a poll, so what ends is the pull that was seen.
    for (const [at, wait] of waits.entries()) {
      const since = new Date(at * 60_000).toISOString();
      await until(async () => (await shown())?.since === since);
      wait.resolve();
      await until(async () => (await shown())?.since !== since);
    }
    assert.equal((await handle.result()).outcome, 'scored');
    assert.equal(await shown(), undefined);
  });

  it('ends the rollout by name, before it has a slot, if it cannot be built, and the build log is stored', async () => {
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

  it('is not fetched for a task whose network the operator does not allow, even if another process has read the task', async () => {
    const image = 'registry.example/networked:1';
    const requesters: string[] = [];
    fetching.set(image, async ({ task }) => {
      requesters.push(task);
      return image;
    });
    const task = await rollouts.host.tasks.resolve(await addressOf(image));
    const network = { mode: 'public' as const, hosts: [], ports: [443] };
    const resolved = { task: { ...task, network }, usesModel: false, branches: trainAllBranches };
    const { outcome, failure } = await rollouts.run(image, { task: resolved, agent: 'oracle', sandbox: 'auto' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'UnsupportedTask', 'prepareImage']);
    assert.match(failure?.message ?? '', /set TEMPER_NETWORK=public/);
    assert.deepEqual(requesters, []);
  });

  it('decides who places the rollout: a host that lacks it leaves the rollout to others, for a moment', async () => {
    const image = 'registry.example/elsewhere:1';
    lacking.add(image);
    assert.equal((await run(image)).outcome, 'scored');
    assert.equal(asked.filter((name) => name === image).length, 3);
    assert.equal(asked.filter((name) => name === 'registry.example/some:1').length, 1);
  });

  it('is fetched again by later stages after it was evicted', async () => {
    const image = 'registry.example/evicted:1';
    const requesters: string[] = [];
    fetching.set(image, async ({ task }) => {
      requesters.push(task);
      return image;
    });
    assert.equal((await run(image)).outcome, 'scored');
    assert.equal(requesters.length, 3);
  });
});
