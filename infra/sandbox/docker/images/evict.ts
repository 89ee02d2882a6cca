import type Docker from 'dockerode';
import { callDaemon, daemonStatus } from '../daemon.ts';
import { readDiskUsage } from '../disk-usage.ts';
import { builderLabel } from './build.ts';
import { removeUnstarted } from './build-network.ts';
import type { ImageUse, ImageUses } from './uses.ts';

/** An image used more recently than this may be about to become a container. */
const graceMs = 900_000;
/** A failed build's leftovers are kept this long, because a retry starts from them. */
const leftoversFor = '1h';
/** Time limit of one call; the next call continues. The reaper has other work. */
const roundMs = 20_000;

export interface Eviction {
  readonly docker: Docker;
  readonly uses: ImageUses;
  readonly stack: string;
  readonly budgetBytes: number;
  /** Whether something is being pulled or built: what looks left over may be part of it. */
  readonly busy: boolean;
}

/**
 * Removes the least recently used of temper's own images until they are within the budget. Keeps those that a container uses,
 * that other images are built on, or that were on this host before. Returns the names of the removed images.
 */
export async function evictImages(eviction: Eviction, nowMs: number, signal: AbortSignal): Promise<readonly string[]> {
  const { docker, uses, stack, busy } = eviction;
  const removed: string[] = [];
  await removeUnstarted(docker, stack, nowMs);
  if (!busy) await removeLeftovers(docker, stack);
  while (Date.now() - nowMs < roundMs) {
    signal.throwIfAborted();
    // The sizes are measured again after each removal: layers that two images shared now belong to one.
    const image = await evictOldest(eviction, nowMs);
    if (image === null) break;
    await uses.forget(image);
    removed.push(image);
  }
  return removed;
}

/** Removes one image. Null if all fit, or if no image may be removed. */
async function evictOldest({ docker, uses, budgetBytes, busy }: Eviction, nowMs: number): Promise<string | null> {
  const known = await uses.list();
  if (known.length === 0) return null;
  const { present, usedBytes } = await measure(docker, known, budgetBytes);
  // Another process or user has removed these, and may pull them again.
  const gone = known.filter(({ image }) => !present.some((one) => one.image === image));
  if (!busy) await Promise.all(gone.map(({ image }) => uses.forget(image)));
  if (usedBytes <= budgetBytes) return null;
  const inUse = new Set((await callDaemon(() => docker.listContainers({ all: true }))).map(({ ImageID }) => ImageID));
  const removable = ({ id, usedAtMs }: Measured): boolean => !inUse.has(id) && nowMs - usedAtMs > graceMs;
  for (const { image } of oldestFirst(present).filter(removable)) if (await removeImage(docker, image)) return image;
  return null;
}

const oldestFirst = <Image extends Pick<ImageUse, 'usedAtMs'>>(images: readonly Image[]): readonly Image[] =>
  images.toSorted((one, other) => one.usedAtMs - other.usedAtMs);

interface Measured extends ImageUse {
  readonly id: string;
  readonly bytes: number;
}

interface Measurement {
  readonly present: readonly Measured[];
  /** Disk space of all present images; a layer that several share counts once. */
  readonly usedBytes: number;
}

/** Measures the images. Sharing takes the daemon long to compute, so it is only asked if the plain sum exceeds the budget. */
async function measure(docker: Docker, known: readonly ImageUse[], budgetBytes: number): Promise<Measurement> {
  const present = matching(await callDaemon(() => docker.listImages()), known);
  const wholeBytes = sumOf(present.map(({ bytes }) => bytes));
  if (wholeBytes <= budgetBytes) return { present, usedBytes: wholeBytes };
  const { Images, LayersSize = Number.POSITIVE_INFINITY } = (await readDiskUsage(docker)) as DiskUsage;
  const own = new Set(present.map(({ id }) => id));
  // Counts all layers of this host except those that belong to one other image alone. Layers shared between other images are
  // thus counted as temper's, which errs on the safe side.
  const others = (Images ?? []).filter(({ Id }) => !own.has(Id));
  // SharedSize is -1 if not computed.
  const othersBytes = sumOf(others.map(({ Size, SharedSize }) => Size - Math.max(0, SharedSize)));
  return { present, usedBytes: Math.min(LayersSize - othersBytes, wholeBytes) };
}

/** Returns the number and the size of temper's own images, in which a layer that several share counts once for each. */
export async function sizeOfOwnImages(docker: Docker, uses: ImageUses): Promise<{ count: number; bytes: number }> {
  const present = matching(await callDaemon(() => docker.listImages()), await uses.list());
  return { count: present.length, bytes: sumOf(present.map(({ bytes }) => bytes)) };
}

interface DiskUsage {
  readonly Images: readonly Listed[] | null;
  readonly LayersSize?: number;
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

type Listed = Pick<Docker.ImageInfo, 'Id' | 'RepoTags' | 'RepoDigests' | 'Size' | 'SharedSize'>;

function matching(listed: readonly Listed[], known: readonly ImageUse[]): readonly Measured[] {
  const byName = new Map(
    listed.flatMap((info) =>
      [...(info.RepoTags ?? []), ...(info.RepoDigests ?? [])].map((name) => [name, info] as const),
    ),
  );
  return known.flatMap((use) => {
    const info = byName.get(use.image) ?? byName.get(`${use.image}:latest`);
    return info === undefined ? [] : [{ ...use, id: info.Id, bytes: info.Size }];
  });
}

/** Removes an image. Returns false if a container or another image needs it. */
async function removeImage(docker: Docker, image: string): Promise<boolean> {
  try {
    await callDaemon(() => docker.getImage(image).remove());
    return true;
  } catch (error) {
    if (daemonStatus(error) === 404) return true;
    if (daemonStatus(error) === 409) return false;
    throw error;
  }
}

async function removeLeftovers(docker: Docker, stack: string): Promise<void> {
  const filters = { dangling: ['true'], label: [`${builderLabel}=${stack}`], until: [leftoversFor] };
  await callDaemon(() => docker.pruneImages({ filters })).catch((error: unknown) => {
    // Another prune is in progress.
    if (daemonStatus(error) !== 409) throw error;
  });
}
