import Docker from 'dockerode';
import { z } from 'zod';
import type { SandboxChanges } from '../changes.ts';
import { labelsOf, type StoredSpec, storedSpecOf } from '../labels.ts';
import { createLimiter } from '../limiter.ts';
import type {
  Sandbox,
  SandboxLabels,
  SandboxNeeds,
  SandboxProvider,
  SandboxSpec,
  UnsupportedReason,
} from '../sandbox.ts';
import { adoptWorkdir } from '../shell/adopt-workdir.ts';
import { createReports } from '../shell/reports.ts';
import { createShellSandbox } from '../shell/sandbox.ts';
import { listSandboxes, removeSandbox } from './beside.ts';
import { changedPrograms } from './changed-programs.ts';
import { ensureContainer, imageVariablesOf } from './container.ts';
import { missingImage } from './create-container.ts';
import { callDaemon, orIfMissing } from './daemon.ts';
import { describeDocker } from './describe.ts';
import { createBytesBeside } from './disk-beside.ts';
import { createDiskQuota } from './disk-quota.ts';
import type { LimitReport } from './dropped-limits.ts';
import { findGpus } from './gpus.ts';
import { createImageReader } from './image-facts.ts';
import type { OpenBuildProxy } from './images/build-network.ts';
import { createImages, imageId } from './images/images.ts';
import { noRegistryAccounts, type RegistryAccounts } from './images/registry-accounts.ts';
import { type ImageUses, noUses } from './images/uses.ts';
import { readChanges } from './read-changes.ts';
import { ensureServices, ensureVolumes } from './services.ts';
import { type DockerSettings, defaultDockerSettings } from './settings.ts';
import { createContainerShell } from './shell.ts';
import { writeChanges } from './write-changes.ts';

export interface DockerProviderOptions extends Partial<DockerSettings>, Partial<LimitReport> {
  readonly stack: string;
  /** Records the images that temper pulled or built. Default: they are not recorded, and no image is removed. */
  readonly uses?: ImageUses;
  /** Accounts at private registries. Default: images are pulled without an account. */
  readonly accounts?: RegistryAccounts;
  /** Opens the networks of image builds. Default: builds have none. */
  readonly buildProxy?: OpenBuildProxy;
  /** Client of the daemon. Default: the daemon that DOCKER_HOST or the standard socket names. */
  readonly docker?: Docker;
}

/**
 * Creates sandboxes as Docker containers: a separate uid for the agent, no capabilities, no network, and limits enforced by
 * cgroup.
 */
export function createDockerProvider({
  stack,
  docker = new Docker(),
  uses = noUses,
  accounts = noRegistryAccounts,
  buildProxy = async () => null,
  onDroppedLimits = () => undefined,
  ...given
}: DockerProviderOptions): SandboxProvider {
  const reports = createReports();
  const reader = createImageReader();
  const settings = { ...defaultDockerSettings, ...given };
  const images = createImages({ docker, stack, settings, uses, accounts, buildProxy });
  const bytesBeside = createBytesBeside(docker);
  const creations = createLimiter(settings.creates);

  const quota = createDiskQuota(docker);
  const open = ({ id, name, labels, spec, variables }: FoundContainer): Sandbox => {
    const ofServices = spec.services ? { bytesBeside } : {};
    const shell = createContainerShell(docker, { name, id, root: spec.root, variables, ...ofServices });
    const container = docker.getContainer(id);
    const changes: SandboxChanges = {
      note: async () => undefined,
      read: (leftOut, signal) => readChanges(container, shell, leftOut, signal),
      write: (written, signal) => writeChanges(container, shell, written, signal),
      changedPrograms: () => changedPrograms(container),
    };
    return createShellSandbox({ kind: 'docker', shell, labels, spec, reports: reports.of(id), changes });
  };
  const ensure = async (spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> => {
    signal.throwIfAborted();
    const { id, adopt, placed, variables } = await creations.run(async () => {
      await ensureVolumes(docker, spec);
      return ensureContainer(docker, spec, { images: reader, runtime: settings.runtime, quota, onDroppedLimits });
    }, signal);
    const { beside } = spec;
    if (beside !== undefined) {
      const container = { id, spec: { ...spec, beside }, runtime: settings.runtime, variables };
      await ensureServices(docker, container, { creations, bytesBeside, onDroppedLimits }, signal);
    }
    if (adopt) await adoptWorkdir(createContainerShell(docker, { name: spec.name, id, variables }), spec, signal);
    const stored = { ...spec, ...(beside && { services: true as const }) };
    const sandbox = open({ id, name: spec.name, labels: spec.labels, spec: stored, variables });
    for (const files of placed ? [] : (spec.files ?? [])) await sandbox.putFiles(files, signal);
    return sandbox;
  };

  return {
    kind: 'docker',
    programs: 'image',
    sharesProcesses: true,
    givesRoot: true,
    runsServices: true,
    givesGpus: true,
    givesTmpfs: true,
    givesHosts: true,
    carriesChanges: true,
    channels: ['socket', 'stream'],
    prepare: images.prepare,
    imageId: (image) => imageId(docker, image),
    evictImages: images.evict,
    ensure,
    attach: (name) => findContainer(docker, stack, name).then((found) => found && open(found)),
    remove: async (name) => {
      const container = await findContainer(docker, stack, name);
      if (container) reports.forget(container.id);
      return removeSandbox(docker, { stack, name, container });
    },
    list: (ofStack) => listSandboxes(docker, ofStack),
    // The daemon itself finishes a removal that it has accepted.
    clearLeftovers: async () => undefined,
    supports: createSupports(docker, settings),
    describe: () => describeDocker(docker, settings, quota),
    close: async () => undefined,
  };
}

interface FoundContainer {
  readonly id: string;
  readonly name: string;
  readonly labels: SandboxLabels;
  readonly spec: StoredSpec;
  /** The names of the variables that its image sets. */
  readonly variables: readonly string[];
}

async function findContainer(docker: Docker, stack: string, name: string): Promise<FoundContainer | undefined> {
  const info = await callDaemon(() => docker.getContainer(name).inspect()).catch(orIfMissing);
  if (!info) return undefined;
  const labels = labelsOf(info.Config.Labels);
  const spec = storedSpecOf(info.Config.Labels);
  if (labels?.stack !== stack || !spec) return undefined;
  return { id: info.Id, name, labels, spec, variables: imageVariablesOf(info) };
}

/** The count is 0 if the daemon does not say it. */
const cpuInfo = z.object({ NCPU: z.number().default(0) });

/** Returns the number of the daemon's CPUs, 0 if it does not say it. It is asked once, since it counts its containers to answer. */
function createCpuCount(docker: Docker): () => Promise<number> {
  let known: number | undefined;
  return async () => {
    known ??= cpuInfo.parse(await callDaemon(() => docker.info())).NCPU;
    return known;
  };
}

/** Says how many CPUs the daemon has, if those are too few: it then refuses a container that may use more. */
async function lackingCpus(cpuCount: () => Promise<number>, cpus: number): Promise<string | null> {
  if (cpus <= 1) return null;
  const count = await cpuCount();
  return count === 0 || cpus <= count ? null : `the Docker daemon of this host has ${count}`;
}

function createSupports(docker: Docker, settings: DockerSettings): SandboxProvider['supports'] {
  const daemon: Daemon = { docker, cpuCount: createCpuCount(docker) };
  return (needs) => refusal(daemon, settings, needs);
}

interface Daemon {
  readonly docker: Docker;
  readonly cpuCount: () => Promise<number>;
}

async function refusal(
  { docker, cpuCount }: Daemon,
  { pulls, builds }: DockerSettings,
  { task, image, imageFrom, cpus = 0, gpus = 0, gpuTypes = [] }: SandboxNeeds,
): Promise<UnsupportedReason | undefined> {
  const lacking = await lackingCpus(cpuCount, cpus);
  if (lacking !== null) {
    const text = `task ${task} asks for ${cpus} CPUs in one container, and ${lacking}; use a host with more, or lower the limit`;
    return { type: 'UnsupportedTask', message: text };
  }
  const choice = gpus > 0 && (await findGpus(docker, { count: gpus, types: gpuTypes }));
  if (choice && 'refusal' in choice) {
    const text = `task ${task} needs GPUs (environment.gpus = ${gpus}), and ${choice.refusal}`;
    return { type: 'UnsupportedTask', message: text };
  }
  if (imageFrom === 'dockerfile') {
    if (builds > 0) return undefined;
    const text = `task ${task} needs its Dockerfile built, but TEMPER_BUILDS is 0 on this host; raise it, or use another host`;
    return { type: 'UnsupportedTask', message: text };
  }
  if (imageFrom === 'registry' && pulls > 0) return undefined;
  const found = await callDaemon(() => docker.getImage(image).inspect()).catch(orIfMissing);
  if (found) return undefined;
  return { type: 'MissingImage', message: `task ${task}: ${missingImage(image).message}` };
}
