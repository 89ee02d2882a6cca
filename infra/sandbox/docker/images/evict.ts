/** Keeps the images that temper brought within their share of the disk: the one that was not used for longest goes first. */
import type Docker from 'dockerode';
import { callDaemon, daemonStatus } from '../daemon.ts';
import { builderLabel } from '../labels.ts';
import type { ImageUse, ImageUses } from './uses.ts';

/** One that was asked for just now is about to become a container. */
const graceMs = 900_000;
/** What failed builds leave is their start when they are tried again. */
const leftoversFor = '1h';
/** The rest goes in the next round: the reaper has other work. */
const roundMs = 20_000;

export interface HeldImage extends ImageUse {
  /** What its removal gives back, and what it shares with others. */
  readonly ownBytes: number;
  readonly sharedBytes: number;
}

/** Which to remove, in this order, so that the rest fits. Layers that several share count once. */
export function chooseEvictions<Held extends HeldImage>(
  held: readonly Held[],
  budgetBytes: number,
  mayGo: (image: Held) => boolean,
): readonly Held[] {
  const own = held.reduce((sum, { ownBytes }) => sum + ownBytes, 0);
  let over = own + Math.max(0, ...held.map(({ sharedBytes }) => sharedBytes)) - budgetBytes;
  const oldestFirst = [...held].sort((one, other) => one.usedAtMs - other.usedAtMs);
  return oldestFirst.filter((image) => {
    if (over <= 0 || !mayGo(image)) return false;
    over -= image.ownBytes;
    return true;
  });
}

export interface Eviction {
  readonly docker: Docker;
  readonly uses: ImageUses;
  readonly stack: string;
  readonly budgetBytes: number;
  /** Something is pulled or built: what looks left over may be a part of it. */
  readonly busy: boolean;
}

/** Removes nothing that a container is made of, that others are built upon, or that was on this host before. */
export async function evictImages(eviction: Eviction, nowMs: number, signal: AbortSignal): Promise<readonly string[]> {
  const { docker, uses, stack, budgetBytes, busy } = eviction;
  const removed: string[] = [];
  if (!busy) await removeLeftovers(docker, stack);
  const known = await uses.list();
  if (known.length === 0) return removed;
  const held = await measure(docker, known, budgetBytes);
  // Removed by somebody else, who may also bring it back.
  const gone = known.filter(({ image }) => !held.some((one) => one.image === image));
  if (!busy) await Promise.all(gone.map(({ image }) => uses.forget(image)));
  const inUse = new Set((await callDaemon(() => docker.listContainers({ all: true }))).map(({ ImageID }) => ImageID));
  const mayGo = ({ id, usedAtMs }: Measured): boolean => !inUse.has(id) && nowMs - usedAtMs > graceMs;
  for (const { image } of chooseEvictions(held, budgetBytes, mayGo)) {
    signal.throwIfAborted();
    if (Date.now() - nowMs > roundMs) break;
    if (!(await removeImage(docker, image))) continue;
    await uses.forget(image);
    removed.push(image);
  }
  return removed;
}

interface Measured extends HeldImage {
  readonly id: string;
}

/** What is shared takes the daemon a while to find out: it is asked only where the whole sizes are too much. */
async function measure(docker: Docker, known: readonly ImageUse[], budgetBytes: number): Promise<readonly Measured[]> {
  const listed = await callDaemon(() => docker.listImages());
  const found = matching(listed, known);
  if (found.reduce((sum, { ownBytes }) => sum + ownBytes, 0) <= budgetBytes) return found;
  const { Images } = await callDaemon(() => docker.df());
  return matching(Images ?? [], known);
}

type Listed = Pick<Docker.ImageInfo, 'Id' | 'RepoTags' | 'RepoDigests' | 'Size' | 'SharedSize'>;

function matching(listed: readonly Listed[], known: readonly ImageUse[]): readonly Measured[] {
  const byName = new Map(
    listed.flatMap((info) =>
      [...(info.RepoTags ?? []), ...(info.RepoDigests ?? [])].map((name) => [name, info] as const),
    ),
  );
  return known.flatMap((use) => {
    const info = byName.get(use.image) ?? byName.get(`${use.image}:latest`);
    if (info === undefined) return [];
    // -1: not computed.
    const sharedBytes = Math.max(0, info.SharedSize);
    return [{ ...use, id: info.Id, ownBytes: info.Size - sharedBytes, sharedBytes }];
  });
}

/** False: a container or another image needs it. */
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
