/** Sandboxes as Docker containers: a uid of its own for the agent, no capabilities, no network, limits by cgroup. */

import Docker from 'dockerode';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import type {
  Sandbox,
  SandboxDescription,
  SandboxInfo,
  SandboxNeeds,
  SandboxProvider,
  SandboxRefusal,
  SandboxSpec,
} from '../sandbox.ts';
import { adoptWorkdir } from './adopt.ts';
import { ensureContainer, missingImage } from './container.ts';
import { callDaemon, daemonStatus } from './daemon.ts';
import { createImageReader } from './image.ts';
import { type Accounts, noAccounts } from './images/accounts.ts';
import { createGate } from './images/gate.ts';
import { createImages, imageId } from './images/images.ts';
import { type ImageUses, noUses } from './images/uses.ts';
import { Inside } from './inside.ts';
import { keptSpecOf, labelsOf, stackLabel } from './labels.ts';
import { type DockerLimits, defaultLimits } from './limits.ts';
import type { Recorders } from './processes.ts';
import { type DockerPlace, DockerSandbox } from './sandbox.ts';

export interface DockerProviderOptions extends Partial<DockerLimits> {
  readonly stack: string;
  /** Which images it brought; default: it is not kept, and none is removed. */
  readonly uses?: ImageUses;
  /** At private registries; default: it pulls as nobody. */
  readonly accounts?: Accounts;
  /** Default: the daemon that DOCKER_HOST or the standard socket names. */
  readonly docker?: Docker;
}

export function createDockerProvider({
  stack,
  docker = new Docker(),
  uses = noUses,
  accounts = noAccounts,
  ...given
}: DockerProviderOptions): SandboxProvider {
  const recorders: Recorders = new Map();
  const reader = createImageReader();
  const limits = { ...defaultLimits, ...given };
  const images = createImages({ docker, stack, limits, uses, accounts });
  const creating = createGate(limits.creates);

  const ensure = async (spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> => {
    signal.throwIfAborted();
    const { id, adopt } = await creating.run(() => ensureContainer(docker, reader, spec), signal);
    if (adopt) await adoptWorkdir(new Inside(docker, spec.name, id), spec, signal);
    return new DockerSandbox({ docker, id, name: spec.name, labels: spec.labels, spec, recorders });
  };

  return {
    kind: 'docker',
    prepare: images.prepare,
    imageId: (image) => imageId(docker, image),
    evictImages: images.evict,
    ensure,
    attach: async (name) => {
      const place = await findPlace(docker, stack, name);
      return place && new DockerSandbox({ ...place, recorders });
    },
    remove: async (name) => {
      const place = await findPlace(docker, stack, name);
      if (!place) return false;
      for (const key of recorders.keys()) if (key.startsWith(place.id)) recorders.delete(key);
      await removeContainer(docker, place.id);
      return true;
    },
    list: (ofStack) => listContainers(docker, ofStack),
    // A removal that was asked for is the daemon's to finish.
    clearLeftovers: async () => undefined,
    supports: (needs) => refusal(docker, limits, needs),
    describe: () => describe(docker),
    close: async () => undefined,
  };
}

async function findPlace(
  docker: Docker,
  stack: string,
  name: string,
): Promise<Omit<DockerPlace, 'recorders'> | undefined> {
  const info = await callDaemon(() => docker.getContainer(name).inspect()).catch(orIfMissing);
  if (!info) return undefined;
  const labels = labelsOf(info.Config.Labels);
  const spec = keptSpecOf(info.Config.Labels);
  if (labels?.stack !== stack || !spec) return undefined;
  return { docker, id: info.Id, name, labels, spec };
}

/** Force ends PID 1 and, with the pid namespace, all others. Containers of another stack are left alone. */
async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  try {
    await callDaemon(() => container.remove({ force: true, v: true }));
  } catch (error) {
    if (daemonStatus(error) === 404) return;
    if (daemonStatus(error) !== 409) throw error;
    // Somebody else's removal is in progress.
    await callDaemon(() => container.wait({ condition: 'removed' })).catch(orIfMissing);
  }
}

async function listContainers(docker: Docker, stack: string): Promise<readonly SandboxInfo[]> {
  const filters = { label: [`${stackLabel}=${stack}`] };
  const containers = await callDaemon(() => docker.listContainers({ all: true, filters }));
  return containers.flatMap((container) => {
    const labels = labelsOf(container.Labels);
    const name = container.Names[0]?.replace(/^\//, '');
    if (!labels || name === undefined) return [];
    const running = container.State === 'running';
    return [{ name, kind: 'docker' as const, labels, createdAtMs: container.Created * 1_000, running }];
  });
}

async function refusal(
  docker: Docker,
  { pulls, builds }: DockerLimits,
  { task, image, imageFrom }: SandboxNeeds,
): Promise<SandboxRefusal | undefined> {
  if (imageFrom === 'dockerfile') {
    if (builds > 0) return undefined;
    const text = `expected a host that builds the Dockerfile of task ${task}, got TEMPER_BUILDS=0; raise it, or use another host`;
    return { type: 'UnsupportedTask', message: text };
  }
  if (imageFrom === 'registry' && pulls > 0) return undefined;
  const found = await callDaemon(() => docker.getImage(image).inspect()).catch(orIfMissing);
  if (found) return undefined;
  return { type: 'MissingImage', message: `${missingImage(image).message}; task ${task} names it` };
}

async function describe(docker: Docker): Promise<SandboxDescription> {
  const common = {
    kind: 'docker' as const,
    protects: [
      "the host's files, processes and network",
      'other sandboxes',
      'hidden tests, claims, results and logs: the keeper, the grader and the agent are three uids without capabilities',
      'memory, CPU and processes: limited by cgroup',
    ],
    doesNotProtect: [
      'against kernel bugs: the kernel is shared',
      'disk at once: the quota is watched every two seconds, a single file is limited at once',
    ],
  };
  try {
    const { Version } = await callDaemon(() => docker.version());
    return { ...common, ready: true, summary: `Docker ${Version}` };
  } catch (error) {
    // One that answers with an error, as while it starts, is as little ready as one that does not answer.
    if (!(error instanceof SandboxFailure) && daemonStatus(error) === undefined) throw error;
    return {
      ...common,
      ready: false,
      mayComeUp: true,
      summary: errorMessage(error),
    };
  }
}

function orIfMissing(error: unknown): undefined {
  if (daemonStatus(error) === 404) return undefined;
  throw error;
}
