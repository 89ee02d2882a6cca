import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import { SandboxFailure } from '../failure.ts';
import { callDaemon, daemonStatus, orIfMissing } from './daemon.ts';

/** The time that another creation of the same name may take; the daemon of a busy machine needs seconds for one. */
const creationMs = 60_000;
const inspectPauseMs = 50;

/** A container to create, by its name. */
type NamedContainer = Docker.ContainerCreateOptions & { readonly name: string; readonly Image: string };

/**
 * Creates the container, or finds the one of its name. The daemon reserves a name before the container exists, and releases it if
 * the creation fails. This function therefore repeats both calls until there is a container.
 */
export async function createOrFind(docker: Docker, options: NamedContainer): Promise<Docker.ContainerInspectInfo> {
  const deadlineMs = performance.now() + creationMs;
  for (;;) {
    await create(docker, options);
    const info = await callDaemon(() => docker.getContainer(options.name).inspect()).catch(orIfMissing);
    if (info !== undefined) return info;
    if (performance.now() > deadlineMs) throw neverCreated(options.name);
    await delay(inspectPauseMs);
  }
}

/** Creates a container. The client library would repeat all options in the address, for which a proxy before a daemon may have a limit. */
export function createContainer(
  docker: Docker,
  { name, ...options }: Docker.ContainerCreateOptions & { readonly name: string },
): Promise<Docker.Container> {
  const request: Docker.ContainerCreateOptions & { readonly _query: object; readonly _body: object } = {
    _query: { name },
    _body: options,
  };
  return callDaemon(() => docker.createContainer(request));
}

/** Creates the container unless its name is taken. */
async function create(docker: Docker, options: NamedContainer): Promise<void> {
  try {
    await createContainer(docker, options);
  } catch (error) {
    if (daemonStatus(error) === 404) throw missingImage(options.Image, error);
    if (daemonStatus(error) !== 409) throw error;
  }
}

/** The failure for an image that this host lacks. `answer` is the registry's, if it was asked. */
export function missingImage(image: string, cause?: unknown, answer?: string): SandboxFailure {
  const todo = image.startsWith('temper-tasks:')
    ? 'build it with infra/images/build.sh'
    : 'pull or build it on this host';
  const registry = answer === undefined ? '' : `, and its registry answered: ${answer.slice(0, 300)}`;
  const text = `the image ${image} is not on this Docker host${registry}; ${todo}`;
  return new SandboxFailure('MissingImage', text, { cause });
}

function neverCreated(name: string): SandboxFailure {
  const text = `the Docker daemon has had no container for the reserved name ${name} for ${creationMs / 1000} s; temper tries again`;
  return new SandboxFailure('SandboxUnavailable', text);
}
