import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { pack } from 'tar-stream';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { SandboxFailure } from '../failure.ts';
import { addTree, collect } from '../files.ts';
import { labelsOf, requireSameEpoch } from '../labels.ts';
import type { Limiter } from '../limiter.ts';
import type { SandboxSpec } from '../sandbox.ts';
import type { SandboxService } from '../service.ts';
import { createOrFind } from './create-container.ts';
import { callDaemon, daemonStatus, explainLoss, orIfMissing } from './daemon.ts';
import type { BytesBeside } from './disk-beside.ts';
import type { LimitReport } from './dropped-limits.ts';
import { requireFreePorts } from './free-ports.ts';
import { exists } from './image-facts.ts';
import {
  type ImageHealthCheck,
  labelsBeside,
  nameBeside,
  refusedUlimits,
  type SandboxContainer,
  serviceOptions,
} from './service-options.ts';
import { awaitService, readyMs, type StartedService } from './service-state.ts';
import { createContainerShell } from './shell.ts';

/** Makes the volumes that containers of a sandbox share. A volume that exists stays as it is. */
export async function ensureVolumes(docker: Docker, spec: SandboxSpec): Promise<void> {
  const { services = [], volumes = [] } = spec.beside ?? {};
  const names = [...services.flatMap((service) => service.volumes), ...volumes].map(({ name }) => name);
  for (const name of new Set(names)) {
    if (name === null) continue;
    const options = { Name: nameBeside(spec.name, name), Labels: { ...labelsBeside(spec) } };
    await callDaemon(() => docker.createVolume(options));
  }
}

/** The parts of a provider that services need. */
export interface ServiceMeans extends LimitReport {
  readonly creations: Limiter;
  readonly bytesBeside: BytesBeside;
}

/**
 * Gets or creates the services of a sandbox, each after those that it depends on, and waits until all are ready. Throws
 * SetupFailed for one that fails: nothing but the task itself has run by then.
 */
export async function ensureServices(
  docker: Docker,
  sandbox: SandboxContainer,
  { creations, bytesBeside, onDroppedLimits }: ServiceMeans,
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = performance.now() + readyMs;
  const failure = new AbortController();
  const ending = AbortSignal.any([signal, failure.signal]);
  const started = new Map<string, Promise<StartedService>>();
  const start = async (service: SandboxService): Promise<StartedService> => {
    for (const { service: name, until } of service.dependsOn) {
      const needed = await started.get(name);
      if (needed !== undefined) await awaitService(needed, until, deadlineMs, ending);
    }
    ending.throwIfAborted();
    const container = await creations.run(() => ensureService(docker, sandbox, service, { onDroppedLimits }), ending);
    return { docker, service, container };
  };
  const ready = async (starting: Promise<StartedService>): Promise<void> => {
    try {
      await awaitService(await starting, 'ready', deadlineMs, ending);
    } catch (error) {
      // The first failure ends the waits for the others, which end because of it.
      if (!ending.aborted) failure.abort(error);
      throw error;
    }
  };
  const all = sandbox.spec.beside.services.map((service) => {
    const starting = start(service);
    started.set(service.name, starting);
    return ready(starting);
  });
  const over = new AbortController();
  watchDisk(sandbox.spec, bytesBeside, AbortSignal.any([ending, over.signal])).catch((error: unknown) =>
    failure.abort(error),
  );
  // Nothing may still be created when the caller removes the sandbox.
  await Promise.allSettled(all);
  over.abort();
  signal.throwIfAborted();
  failure.signal.throwIfAborted();
  const { id, spec, variables } = sandbox;
  await requireFreePorts(createContainerShell(docker, { name: spec.name, id, variables }), signal);
}

/** The pause between two measurements of what services write while they start. */
const diskPauseMs = 2_000;

/** Throws SetupFailed once services have written more than their sandbox may; a host that starts them has no other watch yet. */
async function watchDisk(
  { name, diskMb }: SandboxContainer['spec'],
  bytesBeside: BytesBeside,
  over: AbortSignal,
): Promise<void> {
  while (await pause(diskPauseMs, over)) {
    const usedMb = (await bytesBeside(name)) / 2 ** 20;
    if (usedMb <= diskMb || over.aborted) continue;
    const used = `${Math.round(usedMb)} MB of disk before they were ready`;
    const text = `the services of the task wrote ${used}, more than the ${diskMb} MB of its sandbox; raise storage_mb`;
    throw new TemperFailure('SetupFailed', text);
  }
}

/** Waits, and returns whether the wait was not cut short. */
const pause = (ms: number, signal: AbortSignal): Promise<boolean> => delay(ms, true, { signal }).catch(() => false);

/** Gets or creates the container of a service, and starts it. */
async function ensureService(
  docker: Docker,
  sandbox: SandboxContainer,
  service: SandboxService,
  report: LimitReport,
): Promise<Docker.Container> {
  const { spec } = sandbox;
  const options = serviceOptions(sandbox, service, await imageHealthCheck(docker, service));
  const container = docker.getContainer(options.name);
  const make = () =>
    createOrFind(docker, options).catch((error: unknown) => {
      throw unstartable(service, error);
    });
  let info = await make();
  const labels = labelsOf(info.Config.Labels);
  if (labels === undefined) throw foreign(options.name);
  requireSameEpoch(options.name, spec.labels, labels);
  if (info.HostConfig.NetworkMode !== options.HostConfig.NetworkMode) {
    // It belongs to an earlier container of this sandbox, which is gone.
    await callDaemon(() => container.remove({ force: true, v: true })).catch(orIfMissing);
    info = await make();
  }
  if (info.State.Status !== 'created') return container;
  await place(container, service).catch((error: unknown) => {
    throw unstartable(service, error);
  });
  try {
    await callDaemon(() => container.start());
  } catch (error) {
    if (service.ulimits.length > 0 && refusedUlimits(error)) {
      await callDaemon(() => container.remove({ force: true, v: true })).catch(orIfMissing);
      report.onDroppedLimits({ sandbox: spec.name, service: service.name, ulimits: service.ulimits });
      return ensureService(docker, sandbox, { ...service, ulimits: [] }, report);
    }
    // 304: a concurrent call for the same name has started it.
    if (daemonStatus(error) !== 304) {
      throw (await explainLoss(docker, spec.name, sandbox.id)) ?? unstartable(service, error);
    }
  }
  return container;
}

/** Returns the check of a service's image. An image that is missing is reported when the container is made. */
async function imageHealthCheck(docker: Docker, { image }: SandboxService): Promise<ImageHealthCheck> {
  const info = await callDaemon(() => docker.getImage(image).inspect()).catch(orIfMissing);
  return info?.Config.Healthcheck ?? undefined;
}

/** Copies the task's files into a container that has not started. */
async function place(container: Docker.Container, { files }: SandboxService): Promise<void> {
  for (const { tree, at } of files) {
    const tar = pack();
    const packed = collect(tar);
    for (const directory of await missingDirectories(container, at)) {
      tar.entry({ name: `${directory.slice(1)}/`, type: 'directory', mode: 0o755, uid: 0, gid: 0 });
    }
    addTree(tar, tree, { at, uid: 0, gid: 0 });
    tar.finalize();
    const archive = await packed;
    await callDaemon(() => container.putArchive(archive, { path: '/' }));
  }
}

/** Returns a directory and those above it that the container's image does not have, from the top. */
async function missingDirectories(container: Docker.Container, directory: string): Promise<readonly string[]> {
  if (directory === '/' || (await exists(container, directory))) return [];
  const above = directory.slice(0, directory.lastIndexOf('/')) || '/';
  return [...(await missingDirectories(container, above)), directory];
}

/** Matches the error of a runtime about a command, an account or a directory that the image of a service lacks. */
const lacksIt =
  /executable file not found|no such file or directory|permission denied|exec format error|not (?:a )?directory|unable to find (?:user|group)|environment variable|error mounting/i;
const badRequest = 400;

/**
 * Returns the failure of a container that the daemon could not make or start. It is the task's if the task's settings caused it.
 */
function unstartable(service: SandboxService, cause: unknown): unknown {
  if (cause instanceof TemperFailure) return cause;
  const said = errorMessage(cause);
  if (daemonStatus(cause) !== badRequest && !lacksIt.test(said)) return cause;
  const text = `the service ${service.name} of the task did not start: ${said.slice(0, 600)}`;
  return new TemperFailure('SetupFailed', text, { cause });
}

function foreign(name: string): SandboxFailure {
  const text = `a container that temper did not make has the name ${name}; remove or rename it`;
  return new SandboxFailure('SandboxConflict', text);
}
