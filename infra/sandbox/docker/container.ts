/** Making the container of a sandbox: its limits, its owners and the directories that commands expect. */
import { dirname, join } from 'node:path/posix';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { SandboxFailure } from '../failure.ts';
import { collect } from '../files.ts';
import { sameAttempt } from '../labels.ts';
import { requireName } from '../names.ts';
import type { SandboxLabels, SandboxSpec } from '../sandbox.ts';
import { callDaemon, daemonStatus, explainLoss } from './daemon.ts';
import { exists, type ImageReader } from './image.ts';
import { labelsOf, labelsToDocker, specToDocker } from './labels.ts';
import { keeperDirectory } from './scripts.ts';
import { keeperId, uidOf } from './uids.ts';

const megabyte = 2 ** 20;
/** Beyond the agent's own limit, so that the keeper and the grader can always start something. */
const reservedPids = 64;
const keeperMb = 256;
const sharedMemoryMb = 64;
const inspectAttempts = 40;
const inspectPauseMs = 50;
const forever = '2147483647';

export interface MadeContainer {
  readonly id: string;
  /** The image brings a working directory, which the agent doesn't own yet. */
  readonly adopt: boolean;
}

/** Get-or-create by name; runs when this returns. */
export async function ensureContainer(docker: Docker, images: ImageReader, spec: SandboxSpec): Promise<MadeContainer> {
  const container = await createOrFind(docker, spec);
  const info = await inspectMade(container);
  sameAttempt(spec.name, spec.labels, labelsOf(info.Config.Labels) ?? strangers(spec));
  if (info.State.Status !== 'created') {
    const lost = await explainLoss(docker, spec.name, info.Id);
    if (lost) throw lost;
    return { id: info.Id, adopt: await exists(container, adoptDirectoryOf(spec.workdir)) };
  }
  // Only a container that never ran still shows what its image has.
  const image = await images.get(container, info.Image, spec.workdir);
  const skeleton = await packSkeleton(spec, image.accountFiles, image.hasWorkdir);
  await callDaemon(() => container.putArchive(skeleton, { path: '/' }));
  await callDaemon(() => container.start()).catch((error: unknown) => {
    // Somebody else who ensures the same name has started it.
    if (daemonStatus(error) !== 304) throw error;
  });
  return { id: info.Id, adopt: image.hasWorkdir };
}

async function createOrFind(docker: Docker, spec: SandboxSpec): Promise<Docker.Container> {
  try {
    return await callDaemon(() => docker.createContainer(createOptions(spec)));
  } catch (error) {
    if (daemonStatus(error) === 409) return docker.getContainer(spec.name);
    if (daemonStatus(error) === 404) throw missingImage(spec.image, error);
    throw error;
  }
}

/** A name is taken a moment before the daemon knows its container. */
async function inspectMade(container: Docker.Container): Promise<Docker.ContainerInspectInfo> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await callDaemon(() => container.inspect());
    } catch (error) {
      if (daemonStatus(error) !== 404 || attempt === inspectAttempts) throw error;
    }
    await delay(inspectPauseMs);
  }
}

function createOptions(spec: SandboxSpec): Docker.ContainerCreateOptions {
  const keeper = `uid=${keeperId},gid=${keeperId},mode=711,size=${keeperMb}m,noexec,nosuid,nodev`;
  return {
    name: requireName(spec.name),
    Image: spec.image,
    Hostname: 'sandbox',
    User: `${keeperId}:${keeperId}`,
    Entrypoint: [],
    Cmd: ['sleep', forever],
    WorkingDir: '/',
    // An image's own check would run as the keeper, and what it runs may lie where the agent writes.
    Healthcheck: { Test: ['NONE'] },
    Labels: { ...labelsToDocker(spec.labels), ...specToDocker(spec) },
    HostConfig: {
      Init: true,
      NetworkMode: 'none',
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      IpcMode: 'private',
      PidsLimit: spec.pids + reservedPids,
      Memory: spec.memoryMb * megabyte,
      MemorySwap: spec.memoryMb * megabyte,
      NanoCpus: Math.round(spec.cpus * 1e9),
      ShmSize: sharedMemoryMb * megabyte,
      Tmpfs: { [keeperDirectory]: keeper },
      LogConfig: { Type: 'none', Config: {} },
      Binds: [
        ...(spec.gatewayDir === undefined ? [] : [`${spec.gatewayDir}:/gw:ro`]),
        ...spec.mounts.map(({ source, target }) => `${source}:${target}:ro`),
      ],
    },
  };
}

/** A tar written by the daemon before the container starts: the only moment at which owners can be set without capabilities. */
function packSkeleton(
  spec: SandboxSpec,
  accountFiles: ReadonlyMap<string, string>,
  hasWorkdir: boolean,
): Promise<Buffer> {
  const agent = uidOf(spec.name, 'agent');
  const tar = pack();
  const packed = collect(tar);
  const directory = (name: string, uid: number, mode: number) =>
    tar.entry({ name: `${name}/`, type: 'directory', uid, gid: uid, mode });
  directory((hasWorkdir ? adoptDirectoryOf(spec.workdir) : spec.workdir).slice(1), agent, 0o755);
  directory('tests', 0, 0o700);
  directory('logs', 0, 0o755);
  directory('logs/verifier', 0, 0o700);
  directory('logs/agent', agent, 0o755);
  directory('home/agent', agent, 0o755);
  const entries = {
    'etc/passwd': `agent:x:${agent}:${agent}:agent:/home/agent:/bin/sh\n`,
    'etc/group': `agent:x:${agent}:\n`,
  };
  for (const [name, line] of Object.entries(entries)) {
    tar.entry({ name, mode: 0o644, uid: 0, gid: 0 }, (accountFiles.get(name) ?? '') + line);
  }
  tar.finalize();
  return packed;
}

/**
 * Where the image's own workspace is copied to before it takes the working directory's place: beside it, because only the
 * owner of a directory may move it below another.
 */
export const adoptDirectoryOf = (workdir: string): string => join(dirname(workdir), '.adopted');

/** `said`: what the registry answered, if it was asked. */
export function missingImage(image: string, cause?: unknown, said?: string): SandboxFailure {
  const todo = image.startsWith('temper-tasks:')
    ? 'build it with infra/images/build.sh'
    : 'pull or build it on this host';
  const got = said === undefined ? 'none' : `none there, and of its registry: ${said.slice(0, 300)}`;
  const text = `expected the image ${image} on this Docker host, got ${got}; ${todo}`;
  return new SandboxFailure('MissingImage', text, { cause });
}

function strangers(spec: SandboxSpec): SandboxLabels {
  const text = `expected the name ${spec.name} to be free, got a container that temper did not make; remove or rename it`;
  throw new SandboxFailure('SandboxConflict', text);
}
