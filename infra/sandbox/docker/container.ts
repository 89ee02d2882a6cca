import type Docker from 'dockerode';
import { z } from 'zod';
import { SandboxFailure } from '../failure.ts';
import { flatLabels, flatSpec, labelsOf, requireSameEpoch } from '../labels.ts';
import { usualSharedMemoryMb } from '../memory-directory.ts';
import { requireName } from '../names.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { namesBeside } from '../service.ts';
import { keeperId, rootUid, uidOf } from '../shell/accounts.ts';
import { adoptDirectoryOf } from '../shell/adopt-workdir.ts';
import { keepOwnPrograms } from '../shell/own-programs.ts';
import { rootCapabilities } from '../shell/root-capabilities.ts';
import { keeperDirectory } from '../shell/scripts.ts';
import { packSkeleton } from '../shell/skeleton.ts';
import { createOrFind } from './create-container.ts';
import { callDaemon, daemonStatus, explainLoss, orIfMissing } from './daemon.ts';
import { type DiskQuota, quotaOptions } from './disk-quota.ts';
import type { LimitReport } from './dropped-limits.ts';
import { type AskedGpus, findGpus, gpuFailure } from './gpus.ts';
import { daemonMakesNetwork, hostsFile } from './hosts-file.ts';
import { exists, type ImageReader } from './image-facts.ts';
import { memoryDirectories, ofSandboxLabel, refusedUlimits, ulimitsOf, volumeBinds } from './service-options.ts';

/** The daemon tells of no environment where the image sets none. */
const inspected = z.object({ Config: z.object({ Env: z.array(z.string()).nullish() }) });
const megabyte = 2 ** 20;
/** Processes on top of the agent's limit, so that the keeper and the grader can always start one. */
export const reservedPids = 64;
const keeperMb = 256;
/**
 * The first process of a container: keeps where temper's own programs are, and then the container alive, without a variable of the
 * image that could have it load what the agent has written. $1 the agent's uid, empty for root, $2 the directories that it gets.
 */
const firstProcess = `
agent=$1 places=$2
${keepOwnPrograms}
command -v env >/dev/null && exec env -i sleep 2147483647
unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
exec sleep 2147483647
`;

export interface EnsuredContainer {
  readonly id: string;
  /** Whether the container has the spec's files already; if not, they are put once it runs. */
  readonly placed: boolean;
  /** Whether the image has a working directory that the agent does not own yet; see `adoptWorkdir`. */
  readonly adopt: boolean;
  /** The names of the variables that the image sets. */
  readonly variables: readonly string[];
}

/** The parts of a provider that a container needs. */
interface ContainerMeans extends LimitReport {
  readonly images: ImageReader;
  readonly runtime: string;
  readonly quota: () => Promise<DiskQuota>;
}

/** Gets or creates the container of this name, and starts it. */
export async function ensureContainer(
  docker: Docker,
  spec: SandboxSpec,
  means: ContainerMeans,
): Promise<EnsuredContainer> {
  const { images, runtime, quota } = means;
  const devices =
    spec.gpus === undefined ? [] : [await gpuRequest(docker, spec, { count: spec.gpus, types: spec.gpuTypes })];
  const info = await createOrFind(docker, createOptions(spec, { runtime, quota: await quota(), devices }));
  const container = docker.getContainer(info.Id);
  const labels = labelsOf(info.Config.Labels);
  if (labels === undefined) throw foreignContainer(spec);
  requireSameEpoch(spec.name, spec.labels, labels);
  const variables = imageVariablesOf(info);
  if (info.State.Status !== 'created') {
    const loss = await explainLoss(docker, spec.name, info.Id);
    if (loss) throw loss;
    const adopt = await exists(container, adoptDirectoryOf(spec.workdir));
    return { id: info.Id, adopt, placed: !adopt, variables };
  }
  // Only a container that has never run still has its image's content unchanged.
  const path =
    environmentOf(info)
      .find((one) => one.startsWith('PATH='))
      ?.slice('PATH='.length) ?? '';
  const image = await images.get(container, { image: info.Image, workdir: spec.workdir, path });
  // The only moment at which owners can be set without capabilities, and one call for all.
  const skeleton = await packSkeleton(spec, image, daemonMakesNetwork(spec) ? null : hostsFile(spec));
  await callDaemon(() => container.putArchive(skeleton, { path: '/' }));
  try {
    await callDaemon(() => container.start());
  } catch (error) {
    if (spec.ulimits !== undefined && refusedUlimits(error)) {
      await callDaemon(() => container.remove({ force: true, v: true })).catch(orIfMissing);
      const { ulimits, ...others } = spec;
      means.onDroppedLimits({ sandbox: spec.name, service: null, ulimits });
      return ensureContainer(docker, others, means);
    }
    // 304: a concurrent call for the same name has started it.
    if (daemonStatus(error) !== 304) throw (devices.length > 0 && gpuFailure(error, spec.name)) || error;
  }
  const adopt = image.hasWorkdir && !spec.root;
  return { id: info.Id, adopt, placed: !adopt, variables };
}

/**
 * Returns the names of the variables of a container that come from its image and could change what a shell runs. PATH leads a script to
 * the program with which it waits until temper's own programs are found, and a name that no shell knows is passed on as it is.
 */
export const imageVariablesOf = (info: Docker.ContainerInspectInfo): readonly string[] =>
  environmentOf(info)
    .map((one) => one.slice(0, one.indexOf('=')))
    .filter((name) => name !== 'PATH' && (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name.startsWith('BASH_FUNC_')));

const environmentOf = (info: Docker.ContainerInspectInfo): readonly string[] => inspected.parse(info).Config.Env ?? [];

/** Chooses the devices again that `supports` found, which may have been in another process. Without them the host is at fault. */
async function gpuRequest(docker: Docker, { name }: SandboxSpec, asked: AskedGpus): Promise<Docker.DeviceRequest> {
  const choice = await findGpus(docker, asked);
  if ('request' in choice) return choice.request;
  throw new SandboxFailure(
    'SandboxUnavailable',
    `sandbox ${name} is to have GPUs (${asked.count}), and ${choice.refusal}`,
  );
}

interface CreateMeans extends Pick<ContainerMeans, 'runtime'> {
  readonly quota: DiskQuota;
  readonly devices: readonly Docker.DeviceRequest[];
}

function createOptions(spec: SandboxSpec, { runtime, quota, devices }: CreateMeans) {
  const keeper = `uid=${keeperId},gid=${keeperId},mode=711,size=${keeperMb}m,noexec,nosuid,nodev`;
  return {
    name: requireName(spec.name),
    Image: spec.image,
    Hostname: 'sandbox',
    // Only a container that root started gives its commands root's capabilities.
    User: spec.root ? `${rootUid}:${rootUid}` : `${keeperId}:${keeperId}`,
    Entrypoint: [],
    Cmd: ['/bin/sh', '-c', firstProcess, 'temper', spec.root ? '' : String(uidOf(spec.name, 'agent')), placesOf(spec)],
    WorkingDir: '/',
    // An image's own health check would run as the keeper, maybe with a program that the agent can replace.
    Healthcheck: { Test: ['NONE'] },
    // A label of the task's image must not make it a service of another sandbox.
    Labels: { ...flatLabels(spec.labels), ...flatSpec(spec), [ofSandboxLabel]: '' },
    NetworkDisabled: !daemonMakesNetwork(spec),
    HostConfig: {
      Init: true,
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      ...(spec.root && { CapAdd: [...rootCapabilities] }),
      ...(runtime !== '' && { Runtime: runtime }),
      ...(devices.length > 0 && { DeviceRequests: [...devices] }),
      SecurityOpt: ['no-new-privileges'],
      IpcMode: 'private',
      PidsLimit: spec.pids + reservedPids,
      Memory: spec.memoryMb * megabyte,
      MemorySwap: spec.memoryMb * megabyte,
      NanoCpus: Math.round(spec.cpus * 1e9),
      ...(spec.ulimits !== undefined && { Ulimits: ulimitsOf(spec.ulimits) }),
      ...quotaOptions(quota, spec.diskMb),
      ShmSize: (spec.sharedMemoryMb ?? usualSharedMemoryMb) * megabyte,
      Tmpfs: { ...memoryDirectories(spec.tmpfs ?? []), [keeperDirectory]: keeper },
      LogConfig: { Type: 'none', Config: {} },
      Binds: [
        ...(spec.gatewayDir === undefined ? [] : [`${spec.gatewayDir}:/gw:ro`]),
        ...spec.mounts.map(({ source, target }) => `${source}:${target}:ro`),
        ...volumeBinds(spec.name, spec.beside?.volumes ?? []),
      ],
      // Services share the file of names, too.
      ExtraHosts: [
        ...namesOf(spec).map((name) => `${name}:127.0.0.1`),
        ...(spec.hosts ?? []).map(({ name, address }) => `${name}:${address}`),
      ],
    },
  };
}

/** The directories that the agent gets. */
function placesOf({ workdir, files = [] }: SandboxSpec): string {
  const ofFiles = files.filter(({ owner }) => owner === 'agent').map(({ at }) => at);
  return [workdir, adoptDirectoryOf(workdir), '/home/agent', '/logs/agent', ...ofFiles].join(' ');
}

/** The names of the services beside a sandbox, and of the sandbox itself. */
const namesOf = ({ beside }: SandboxSpec): readonly string[] =>
  beside === undefined ? [] : [...new Set([...beside.names, ...namesBeside(beside)])];

function foreignContainer({ name }: SandboxSpec): SandboxFailure {
  const text = `a container that temper did not make has the name ${name}; remove or rename it`;
  return new SandboxFailure('SandboxConflict', text);
}
