import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { callDaemon, daemonStatus } from './daemon.ts';

/**
 * The daemon's answer, as far as it tells its ways to GPUs. Docker lists devices since version 28.2, and leaves the field out if it
 * has none.
 */
const daemonInfo = z.object({
  Runtimes: z.record(z.string(), z.unknown()).default({}),
  DiscoveredDevices: z.array(z.object({ Source: z.string().default(''), ID: z.string() })).nullish(),
});

/** The facts of a host that decide on its way to GPUs. */
export interface GpuFacts {
  readonly runtimes: readonly string[];
  /** The full names of the devices in the daemon's CDI specifications. */
  readonly devices: readonly string[];
  /** Whether this machine has NVIDIA's hook where a daemon looks for it. */
  readonly hasHook: boolean;
}

/** The runtime that `nvidia-ctk runtime configure` adds to a daemon. */
const runtime = 'nvidia';
/** The program that makes a daemon accept `docker run --gpus`, also if no runtime is configured. */
const hook = 'nvidia-container-runtime-hook';
/** The folders where systemd lets a daemon look for programs. */
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** The kind of NVIDIA's devices in a CDI specification, before the name of the device. */
const kind = 'nvidia.com/gpu=';

/** A way to the GPUs of a host, or why it has none. */
export type GpuChoice = { readonly request: Docker.DeviceRequest } | { readonly refusal: string };

/**
 * Chooses the request for a number of GPUs. CDI comes first, as in Docker's own `--gpus` since version 29.2: it is the only way
 * whose devices the daemon lists.
 */
export function chooseGpus({ runtimes, devices, hasHook }: GpuFacts, gpus: number): GpuChoice {
  const listed = devices.filter((device) => device.startsWith(kind)).map((device) => device.slice(kind.length));
  // A whole GPU has a number; `all` and parts of a GPU do not count.
  const numbers = listed.filter((device) => /^\d+$/.test(device)).toSorted((one, other) => Number(one) - Number(other));
  const ids = numbers.slice(0, gpus).map((number) => `${kind}${number}`);
  if (ids.length === gpus) return { request: { Driver: 'cdi', DeviceIDs: ids } };
  if (ids.length > 0) {
    return { refusal: `the Docker daemon of this host lists only ${ids.join(', ')}; use a host with more GPUs` };
  }
  // What `docker run --gpus` asks for. How many GPUs there are is known only once a container starts.
  if (runtimes.includes(runtime) || hasHook) {
    return { request: { Driver: '', Count: gpus, Capabilities: [['gpu']] } };
  }
  const others = listed.length === 0 ? '' : ` (only ${listed.map((device) => `${kind}${device}`).join(', ')})`;
  const text = `the Docker daemon of this host lists no whole GPU${others} and no runtime ${runtime}, and ${hook} is in none of ${folders.join(', ')}; install NVIDIA's container toolkit, run \`nvidia-ctk runtime configure\` and restart the daemon`;
  return { refusal: text };
}

/** Asks the daemon and this machine for their ways to GPUs, and chooses one. */
export async function findGpus(docker: Docker, gpus: number): Promise<GpuChoice> {
  const { Runtimes, DiscoveredDevices } = daemonInfo.parse(await callDaemon(() => docker.info()));
  const devices = (DiscoveredDevices ?? []).filter(({ Source }) => Source === 'cdi').map(({ ID }) => ID);
  return chooseGpus({ runtimes: Object.keys(Runtimes), devices, hasHook: await findHook() }, gpus);
}

async function findHook(): Promise<boolean> {
  const found = await Promise.allSettled(folders.map((folder) => access(join(folder, hook), constants.X_OK)));
  return found.some(({ status }) => status === 'fulfilled');
}

/** Returns the failure of a container that could not start because of its GPUs; undefined for any other error. */
export function gpuFailure(error: unknown, name: string): SandboxFailure | undefined {
  const evidence = errorMessage(error);
  if (daemonStatus(error) === undefined || !/select device driver|CDI|nvidia/i.test(evidence)) return undefined;
  const text = `the Docker daemon could not pass GPUs through to sandbox ${name}; check \`docker run --gpus 1 IMAGE nvidia-smi\` on this host`;
  return new SandboxFailure('SandboxUnavailable', text, { cause: error, evidence });
}
