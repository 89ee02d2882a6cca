import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import { SandboxFailure } from '../../failure.ts';
import type { BuildContext, ImageName, ImageProgress, ImageRequest, ReportImage } from '../../image.ts';
import { createLimiter } from '../../limiter.ts';
import { missingImage } from '../create-container.ts';
import { callDaemon, daemonStatus } from '../daemon.ts';
import type { DockerSettings } from '../settings.ts';
import { type Build, buildImage } from './build.ts';
import { dockerNetwork, type OpenBuildProxy, openProxied } from './build-network.ts';
import { evictImages } from './evict.ts';
import { createInFlight } from './in-flight.ts';
import { pullImage } from './pull.ts';
import type { RegistryAccounts } from './registry-accounts.ts';
import type { ImageUses } from './uses.ts';

export interface ImagesOptions {
  readonly docker: Docker;
  readonly stack: string;
  readonly settings: DockerSettings;
  readonly uses: ImageUses;
  readonly accounts: RegistryAccounts;
  readonly buildProxy: OpenBuildProxy;
}

/** The images of a Docker host. */
export interface Images {
  /** Pulls the image that a task names, or builds the one that it describes, and returns its name. */
  prepare(image: ImageRequest, report: ReportImage, signal: AbortSignal): Promise<string>;
  /** Removes images until temper's own are within their share of the disk, and returns their names. */
  evict(signal: AbortSignal): Promise<readonly string[]>;
}

export function createImages(options: ImagesOptions): Images {
  const { docker, stack, settings, uses, accounts } = options;
  const inFlight = createInFlight<ImageProgress, void>();
  const builds = createLimiter(settings.builds);
  const pulls = createLimiter(settings.pulls);

  let running = 0;
  async function fetch(image: string, work: () => Promise<void>): Promise<void> {
    await uses.add(image);
    running += 1;
    try {
      await work();
      // Another process may have removed the record meanwhile, because it found no such image.
      await uses.add(image);
    } catch (error) {
      // If the image appears later, another program has pulled it.
      await uses.forget(image);
      throw error;
    } finally {
      running -= 1;
    }
  }

  async function named({ image, from }: ImageName, report: ReportImage, signal: AbortSignal): Promise<string> {
    await uses.use(image);
    if (await inspect(docker, image)) return image;
    if (from === 'host' || settings.pulls === 0) throw missingImage(image);
    const work = (progress: ReportImage, ending: AbortSignal): Promise<void> => {
      progress({ image, doing: 'waiting for a free slot' });
      const pull = async (): Promise<void> =>
        pullImage(docker, { image, account: await accounts(image, ending) }, progress, ending);
      return pulls.run(() => fetch(image, pull), ending);
    };
    await inFlight.join(image, work, report, signal);
    report({ image, doing: 'ready' });
    return image;
  }

  async function built(
    { task, image }: ImageRequest,
    context: BuildContext,
    report: ReportImage,
    signal: AbortSignal,
  ): Promise<string> {
    const bases: string[] = [];
    for (const base of context.bases) {
      await named(base, report, signal);
      bases.push(await requireBase(docker, task, base.image));
    }
    const tag = `${image}-${digest(bases)}`;
    await uses.use(tag);
    if (await inspect(docker, tag)) return tag;
    const asked = { task, tag, context, bases };
    const work = (progress: ReportImage, ending: AbortSignal): Promise<void> => {
      progress({ image: tag, doing: 'waiting for a free slot' });
      return builds.run(() => fetch(tag, () => buildNetworked(options, asked, progress, ending)), ending);
    };
    await inFlight.join(tag, work, report, signal);
    report({ image: tag, doing: 'ready' });
    if (await inspect(docker, tag)) return tag;
    throw new SandboxFailure('SandboxUnavailable', `the image ${tag} disappeared after its build; it is built again`);
  }

  return {
    prepare: (request, report, signal) =>
      typeof request.source === 'string'
        ? named({ image: request.image, from: request.source }, report, signal)
        : built(request, request.source, report, signal),
    evict: async (signal) => {
      const budgetBytes = settings.imageDiskGb === 0 ? Number.POSITIVE_INFINITY : settings.imageDiskGb * 1e9;
      return evictImages({ docker, uses, stack, budgetBytes, busy: running > 0 }, Date.now(), signal);
    },
  };
}

interface AskedBuild extends Pick<Build, 'task' | 'tag' | 'context'> {
  /** The ids of the images that it starts from. */
  readonly bases: readonly string[];
}

/** Builds an image with the network of its policy as far as that is allowed, unless the operator names one of Docker's. */
async function buildNetworked(
  { docker, stack, settings, buildProxy }: ImagesOptions,
  { bases, ...build }: AskedBuild,
  report: ReportImage,
  signal: AbortSignal,
): Promise<void> {
  const { network: policy, timeoutSec } = build.context;
  const proxy = settings.buildNetwork === 'none' && policy !== undefined ? await buildProxy(policy) : null;
  const network =
    proxy === null
      ? dockerNetwork(settings.buildNetwork)
      : await openProxied(proxy, { docker, stack, bases, timeoutSec }, signal);
  try {
    await buildImage(docker, { ...build, stack, network }, report, signal);
  } finally {
    await network.close();
  }
}

/** Returns the id of an image, which identifies its content. */
export async function imageId(docker: Docker, image: string): Promise<string> {
  const found = await inspect(docker, image);
  if (found === undefined) throw missingImage(image);
  return found.Id;
}

/** Returns the id of a base image: another base under the same name makes another image. */
async function requireBase(docker: Docker, task: string, base: string): Promise<string> {
  const found = await inspect(docker, base);
  if (found === undefined) throw missingImage(base);
  const triggers = found.Config.OnBuild?.length ?? 0;
  if (triggers === 0) return found.Id;
  const text = `environment/Dockerfile of task ${task}: its base image ${base} has ${triggers} unchecked ONBUILD triggers; use another base image`;
  throw new SandboxFailure('UnsupportedTask', text);
}

async function inspect(docker: Docker, image: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await callDaemon(() => docker.getImage(image).inspect());
  } catch (error) {
    if (daemonStatus(error) === 404) return undefined;
    throw error;
  }
}

const digest = (ids: readonly string[]): string =>
  createHash('sha256').update(ids.join('\n')).digest('hex').slice(0, 12);
