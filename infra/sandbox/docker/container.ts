import { dirname, join } from 'node:path/posix';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { SandboxFailure } from '../failure.ts';
import { addTree, collect } from '../files.ts';
import { requireSameEpoch } from '../labels.ts';
import { requireName } from '../names.ts';
import type { SandboxSpec } from '../sandbox.ts';
import { callDaemon, daemonStatus, explainLoss } from './daemon.ts';
import { exists, type ImageReader } from './image-facts.ts';
import { labelsOf, labelsToDocker, specToDocker } from './labels.ts';
import * as scripts from './scripts.ts';
import type { ContainerShell } from './shell.ts';
import { keeperId, uidOf } from './uids.ts';

const megabyte = 2 ** 20;
/** Processes on top of the agent's limit, so that the keeper and the grader can always start one. */
const reservedPids = 64;
const keeperMb = 256;
const sharedMemoryMb = 64;
const inspectAttempts = 40;
const inspectPauseMs = 50;
const forever = '2147483647';

export interface EnsuredContainer {
  readonly id: string;
  /** Whether the container has the spec's files already; if not, they are put once it runs. */
  readonly placed: boolean;
  /** Whether the image has a working directory that the agent does not own yet; see `adoptWorkdir`. */
  readonly adopt: boolean;
}

/** Gets or creates the container of this name, and starts it. */
export async function ensureContainer(
  docker: Docker,
  images: ImageReader,
  spec: SandboxSpec,
): Promise<EnsuredContainer> {
  const container = await createOrFind(docker, spec);
  const info = await inspectCreated(container);
  const labels = labelsOf(info.Config.Labels);
  if (labels === undefined) throw foreignContainer(spec);
  requireSameEpoch(spec.name, spec.labels, labels);
  if (info.State.Status !== 'created') {
    const loss = await explainLoss(docker, spec.name, info.Id);
    if (loss) throw loss;
    const adopt = await exists(container, adoptDirectoryOf(spec.workdir));
    return { id: info.Id, adopt, placed: !adopt };
  }
  // Only a container that has never run still has its image's content unchanged.
  const image = await images.get(container, info.Image, spec.workdir);
  const skeleton = await packSkeleton(spec, image.accountFiles, image.hasWorkdir);
  await callDaemon(() => container.putArchive(skeleton, { path: '/' }));
  await callDaemon(() => container.start()).catch((error: unknown) => {
    // A concurrent call for the same name has started it.
    if (daemonStatus(error) !== 304) throw error;
  });
  return { id: info.Id, adopt: image.hasWorkdir, placed: !image.hasWorkdir };
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

/** Inspects a new container. Retries, since a name is taken a moment before the daemon knows its container. */
async function inspectCreated(container: Docker.Container): Promise<Docker.ContainerInspectInfo> {
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
    // An image's own health check would run as the keeper, maybe with a program that the agent can replace.
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
      Tmpfs: { [scripts.keeperDirectory]: keeper },
      LogConfig: { Type: 'none', Config: {} },
      Binds: [
        ...(spec.gatewayDir === undefined ? [] : [`${spec.gatewayDir}:/gw:ro`]),
        ...spec.mounts.map(({ source, target }) => `${source}:${target}:ro`),
      ],
    },
  };
}

/**
 * Packs the directories, account files and the spec's files, which the daemon writes before the container starts: the only moment
 * at which owners can be set without capabilities, and one call for all. An image's own working directory is adopted only
 * afterwards, so there the files come later.
 */
function packSkeleton(
  spec: SandboxSpec,
  accountFiles: ReadonlyMap<string, string>,
  hasWorkdir: boolean,
): Promise<Buffer> {
  const agent = uidOf(spec.name, 'agent');
  const tar = pack();
  const packed = collect(tar);
  const made = new Set<string>();
  const directory = (name: string, uid: number, mode: number): void => {
    if (made.has(name)) return;
    made.add(name);
    tar.entry({ name: `${name}/`, type: 'directory', uid, gid: uid, mode });
  };
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
  for (const { tree, at, owner } of hasWorkdir ? [] : (spec.files ?? [])) {
    const uid = uidOf(spec.name, owner);
    directory(at.slice(1), uid, 0o755);
    addTree(tar, tree, { at, uid, gid: uid });
  }
  tar.finalize();
  return packed;
}

/**
 * The directory to which the image's own workspace is copied before it replaces the working directory. It is a sibling, because
 * only its owner may move a directory below another parent.
 */
const adoptDirectoryOf = (workdir: string): string => join(dirname(workdir), '.adopted');

/** The failure for an image that this host lacks. `answer` is the registry's, if it was asked. */
export function missingImage(image: string, cause?: unknown, answer?: string): SandboxFailure {
  const todo = image.startsWith('temper-tasks:')
    ? 'build it with infra/images/build.sh'
    : 'pull or build it on this host';
  const registry = answer === undefined ? '' : `, and its registry answered: ${answer.slice(0, 300)}`;
  const text = `the image ${image} is not on this Docker host${registry}; ${todo}`;
  return new SandboxFailure('MissingImage', text, { cause });
}

function foreignContainer({ name }: SandboxSpec): SandboxFailure {
  const text = `a container that temper did not make has the name ${name}; remove or rename it`;
  return new SandboxFailure('SandboxConflict', text);
}

const alreadyOwned = 3;

/**
 * Gives the image's own working directory to the agent: copies it as the agent, then replaces it by the copy, since no account
 * inside may change owners. Repeatable.
 */
export async function adoptWorkdir(
  shell: ContainerShell,
  { name, workdir }: SandboxSpec,
  signal: AbortSignal,
): Promise<void> {
  const args = [workdir, adoptDirectoryOf(workdir)];
  const copied = await shell.run({ role: 'agent', text: scripts.adoptCopy, args }, signal);
  if (copied.exitCode === alreadyOwned) return;
  const swapped =
    copied.exitCode === 0 ? await shell.run({ role: 'grader', text: scripts.adoptSwap, args }, signal) : copied;
  if (swapped.exitCode === 0) return;
  const text = `could not give ${workdir} of sandbox ${name} to the agent; make it readable for all in the image`;
  throw new SandboxFailure('UnsupportedTask', text, { evidence: String(swapped.stderr).trim().slice(0, 500) });
}
