import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { errorMessage } from '../../../../workflows/contracts/error-message.ts';
import type { NetworkPolicy } from '../../../../workflows/contracts/network.ts';
import { SandboxFailure } from '../../failure.ts';
import { stackLabel } from '../../labels.ts';
import type { SandboxMount } from '../../mount.ts';
import { createContainer } from '../create-container.ts';
import { callDaemon, daemonStatus, orIfMissing } from '../daemon.ts';

/** The network of the commands of one build. */
export interface BuildNetwork {
  /** Docker's network mode for them. */
  readonly mode: string;
  /** Build arguments that are no part of the image. */
  readonly args: Readonly<Record<string, string>>;
  /** Returns the connections that were refused so far, described. */
  refused(): readonly string[];
  close(): Promise<void>;
}

/** The way from a container to the proxy that the host has opened for one build. */
export interface BuildProxy extends Pick<BuildNetwork, 'args' | 'refused' | 'close'> {
  readonly mounts: readonly SandboxMount[];
  readonly env: Readonly<Record<string, string>>;
  /** Returns the program that serves the proxy on a loopback address of its container, and ends after a time. */
  serve(seconds: number): readonly string[];
}

/** Opens the proxy of a build; null if the operator does not allow its network. */
export type OpenBuildProxy = (policy: NetworkPolicy) => Promise<BuildProxy | null>;

/** Returns a network that is Docker's own, or `none`. */
export const dockerNetwork = (mode: string): BuildNetwork => ({
  mode,
  args: {},
  refused: () => [],
  close: async () => undefined,
});

export interface ProxiedBuild {
  readonly docker: Docker;
  readonly stack: string;
  /** The images that the build starts from. */
  readonly bases: readonly string[];
  readonly timeoutSec: number;
}

const namePrefix = 'temper-build-';
/** The age of a container that does not run from which it is a leftover: it is started at once, and gone when it has ended. */
const leftoverMs = 300_000;

/**
 * Removes the containers of a stack's builds that a host worker has made and not started before it was killed. The daemon removes
 * only those that have run, and keeps the image of each.
 */
export async function removeUnstarted(docker: Docker, stack: string, nowMs: number): Promise<void> {
  const filters = { label: [`${stackLabel}=${stack}`], status: ['created', 'exited', 'dead'] };
  const found = await callDaemon(() => docker.listContainers({ all: true, filters }));
  for (const { Id, Names, Created } of found) {
    const isOfBuild = Names.some((name) => name.startsWith(`/${namePrefix}`));
    if (!isOfBuild || nowMs - Created * 1_000 < leftoverMs) continue;
    // 409: it is being removed.
    await callDaemon(() => docker.getContainer(Id).remove({ force: true })).catch((error: unknown) => {
      if (daemonStatus(error) !== 409) orIfMissing(error);
    });
  }
}

const memoryBytes = 512 * 2 ** 20;
const startMs = 30_000;
/** The time beyond the build's own until a container ends whose host worker has died. */
const graceSec = 60;

/**
 * Opens a network without a device for the commands of a build: they share the loopback device of a container, which serves the
 * proxy there and has nothing else. It is made from a base image with a shell; without one, no command of the build needs it.
 */
export async function openProxied(proxy: BuildProxy, build: ProxiedBuild, signal: AbortSignal): Promise<BuildNetwork> {
  const container = build.docker.getContainer(`${namePrefix}${randomUUID()}`);
  async function close(): Promise<void> {
    try {
      await callDaemon(() => container.remove({ force: true })).catch(orIfMissing);
    } finally {
      await proxy.close();
    }
  }
  try {
    for (const base of build.bases) {
      if (!(await serves(container.id, base, { proxy, build }, signal))) continue;
      return { mode: `container:${container.id}`, args: proxy.args, refused: proxy.refused, close };
    }
    await close();
    return dockerNetwork('none');
  } catch (error) {
    await close();
    signal.throwIfAborted();
    if (error instanceof SandboxFailure) throw error;
    const text = `the container that gives a build its network did not start: ${errorMessage(error)}`;
    throw new SandboxFailure('SandboxUnavailable', text, { cause: error });
  }
}

interface Served {
  readonly proxy: BuildProxy;
  readonly build: ProxiedBuild;
}

/** Starts the container from an image, and waits until it serves the proxy. Returns false for an image without a shell. */
async function serves(name: string, image: string, served: Served, signal: AbortSignal): Promise<boolean> {
  const { docker } = served.build;
  const container = await createContainer(docker, { ...describe(image, served), name });
  const ending = AbortSignal.any([signal, AbortSignal.timeout(startMs)]);
  const output = await callDaemon(() => container.attach({ stream: true, stdout: true, stderr: true }));
  output.on('error', () => undefined);
  try {
    // The first line says that the program listens.
    const said = once(output, 'data', { signal: ending });
    said.catch(() => undefined);
    await callDaemon(() => container.start());
    await said;
    return true;
  } catch (error) {
    // The daemon does not find the shell.
    if (daemonStatus(error) !== 400) throw error;
    await callDaemon(() => container.remove({ force: true })).catch(orIfMissing);
    return false;
  } finally {
    // The daemon keeps the stream of a container that never ran.
    if (output instanceof Readable) output.destroy();
  }
}

const describe = (image: string, { proxy, build }: Served): Docker.ContainerCreateOptions => ({
  Image: image,
  User: '65534:65534',
  Entrypoint: [],
  Cmd: [...proxy.serve(build.timeoutSec + graceSec)],
  // Nothing that the image sets decides on how our program runs.
  Env: ['NODE_OPTIONS=', 'LD_PRELOAD=', ...Object.entries(proxy.env).map(([key, value]) => `${key}=${value}`)],
  WorkingDir: '/',
  Healthcheck: { Test: ['NONE'] },
  Labels: { [stackLabel]: build.stack },
  HostConfig: {
    AutoRemove: true,
    Init: true,
    NetworkMode: 'none',
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges'],
    ReadonlyRootfs: true,
    PidsLimit: 64,
    Memory: memoryBytes,
    MemorySwap: memoryBytes,
    LogConfig: { Type: 'none', Config: {} },
    Binds: proxy.mounts.map(({ source, target }) => `${source}:${target}:ro`),
  },
});
