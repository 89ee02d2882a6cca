import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import Docker from 'dockerode';
import { builtImageName, readBuildContext } from '../../../../../infra/harbor/build-context.ts';
import { readDiskUsage } from '../../../../../infra/sandbox/docker/disk-usage.ts';
import { createImageUses } from '../../../../../infra/sandbox/docker/images/uses.ts';
import { createDockerProvider } from '../../../../../infra/sandbox/docker/provider.ts';
import type { SandboxProvider } from '../../../../../infra/sandbox/sandbox.ts';
import { startRegistry } from '../../../../helpers/sandbox/registry.ts';
import { treeOf } from '../../../../helpers/sandbox/workspaces.ts';
import { until } from '../../../../helpers/until.ts';

const docker = new Docker();
const { signal } = new AbortController();

/** Evicts until this number of images is removed: one call ends after a time, which the answers of a busy daemon may take. */
async function evict(provider: SandboxProvider, count: number): Promise<readonly string[]> {
  const removed: string[] = [];
  await until(async () => {
    removed.push(...(await provider.evictImages(signal)));
    return removed.length >= count;
  });
  return [...removed, ...(await provider.evictImages(signal))];
}

it('removes images that temper pulled, but none in use and none that was there before', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-evict-'));
  const registry = await startRegistry();
  const stack = `evict-${process.pid}`;
  const open = (imageDiskGb: number) => createDockerProvider({ stack, imageDiskGb, uses: createImageUses(directory) });
  const images: string[] = [];
  const there = async (): Promise<readonly string[]> => {
    const listed = (await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []);
    return images.filter((image) => listed.includes(image)).map((image) => image.slice(registry.address.length + 1));
  };
  let container: Docker.Container | undefined;
  try {
    for (const name of ['before:1', 'used:1', 'idle:1', 'late:1']) images.push(await registry.add(name, [1_000_000]));
    const [before = '', used = ''] = images;
    await new Promise((resolve, reject) => {
      docker
        .pull(before)
        .then((stream) => docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve(0))), reject);
    });
    for (const image of images) {
      await open(0).prepare({ task: 't', image, source: 'registry' }, () => undefined, signal);
    }
    container = await docker.createContainer({ Image: used, Cmd: ['/layer-0'] });
    assert.deepEqual(await open(0.000_001).evictImages(signal), [], 'expected recently used images to stay');
    for (const name of await readdir(directory)) await utimes(join(directory, name), 1, 1);
    assert.deepEqual(await open(1).evictImages(signal), [], 'expected images within the budget to stay');
    await open(0).prepare({ task: 't', image: images[3] ?? '', source: 'registry' }, () => undefined, signal);
    assert.deepEqual(await evict(open(0.000_001), 1), [images[2]]);
    assert.deepEqual(await there(), ['before:1', 'used:1', 'late:1']);
  } finally {
    await container?.remove({ force: true });
    for (const image of images)
      await docker
        .getImage(image)
        .remove()
        .catch(() => undefined);
    await registry.close();
    await rm(directory, { recursive: true });
  }
});

it('removes no more images than necessary, least recently used first', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-evict-'));
  const registry = await startRegistry();
  const uses = createImageUses(directory);
  const open = (imageDiskGb: number) => createDockerProvider({ stack: `evict-few-${process.pid}`, imageDiskGb, uses });
  const images: string[] = [];
  try {
    for (const [index, name] of ['second:1', 'oldest:1', 'newest:1'].entries()) {
      const image = await registry.add(name, [1_000_000]);
      images.push(image);
      await open(0).prepare({ task: 't', image, source: 'registry' }, () => undefined, signal);
      const usedAt = [2, 1, 3][index] ?? 0;
      await utimes(join(directory, fileOfUse(image)), usedAt, usedAt);
    }
    assert.deepEqual(await evict(open(0.002_5), 1), [images[1]]);
    assert.deepEqual(await evict(open(0.001_5), 1), [images[0]]);
  } finally {
    for (const image of images) {
      await docker
        .getImage(image)
        .remove()
        .catch(() => undefined);
    }
    await registry.close();
    await rm(directory, { recursive: true });
  }
});

it('counts a layer that several images share once', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-evict-'));
  const stack = `evict-shared-${process.pid}`;
  const open = (imageDiskGb: number) => createDockerProvider({ stack, imageDiskGb, uses: createImageUses(directory) });
  const images: string[] = [];
  // Layers that other images share count as temper's.
  const sharedByOthers = await sharedBytes();
  try {
    for (const name of ['one', 'two']) {
      const dockerfile = `FROM temper-tasks:bookworm\nENV TEST=${stack}\nRUN echo ${name} >/${name}\n`;
      const source = readBuildContext(treeOf({ Dockerfile: dockerfile }), 120);
      const request = { task: name, image: builtImageName(source), source };
      images.push(await open(0).prepare(request, () => undefined, signal));
    }
    for (const name of await readdir(directory)) await utimes(join(directory, name), 1, 1);
    const sizes = await Promise.all(images.map(async (image) => (await docker.getImage(image).inspect()).Size));
    const [one = 0, other = 0] = sizes;
    // Much larger than either image, but smaller than both together.
    const budgetBytes = one + other * 0.8 + sharedByOthers;
    assert.deepEqual(await open(budgetBytes / 1e9).evictImages(signal), []);
    assert.deepEqual((await evict(open((one * 0.5) / 1e9), 2)).toSorted(), images.toSorted());
  } finally {
    for (const image of images) {
      await docker
        .getImage(image)
        .remove()
        .catch(() => undefined);
    }
    await rm(directory, { recursive: true });
  }
});

/** Returns the size of the layers that several images of this Docker share. */
async function sharedBytes(): Promise<number> {
  const { Images, LayersSize } = (await readDiskUsage(docker)) as {
    readonly Images: readonly Docker.ImageInfo[];
    readonly LayersSize: number;
  };
  return Images.reduce((bytes, { Size, SharedSize }) => bytes - (Size - Math.max(0, SharedSize)), LayersSize);
}

/** Name of the file in which uses.ts records an image. */
const fileOfUse = (image: string): string => createHash('sha256').update(image).digest('hex');

it("removes the unstarted containers of a stack's builds that a killed host worker has left", async (t) => {
  const stack = `evict-unstarted-${process.pid}`;
  const provider = createDockerProvider({ stack });
  const create = async (name: string, of: string) => {
    const made = { name, Image: 'temper-tasks:bookworm', Cmd: ['true'], Labels: { 'temper.stack': of } };
    const container = await docker.createContainer(made);
    t.after(() => container.remove({ force: true }).catch(() => undefined));
    return name;
  };
  const ours = await create(`temper-build-${stack}`, stack);
  const kept = [await create(`temper-build-other-${stack}`, `${stack}-other`), await create(`${stack}-sandbox`, stack)];
  const left = async (): Promise<readonly string[]> => {
    const found = await docker.listContainers({ all: true, filters: { name: [stack] } });
    return found.map(({ Names }) => Names[0]?.slice(1) ?? '').sort();
  };
  await provider.evictImages(signal);
  assert.deepEqual(await left(), [ours, ...kept].sort(), 'expected one that may be about to start to stay');
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 301_000 });
  await provider.evictImages(signal);
  assert.deepEqual(await left(), [...kept].sort());
});
