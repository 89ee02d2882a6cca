import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import { callDaemon, daemonStatus } from './daemon.ts';
import { describeGpus, type GpuList, isOfType, listGpus } from './gpu-types.ts';

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

/** The GPUs that a sandbox asks for. */
export interface AskedGpus {
  readonly count: number;
  /** The types of which any will do. Default: all. */
  readonly types?: readonly string[] | undefined;
}

/** The numbers of the GPUs that a sandbox may have; null if it may have any. */
type Allowed = readonly number[] | null;

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
export function chooseGpus({ runtimes, devices, hasHook }: GpuFacts, gpus: number, allowed: Allowed = null): GpuChoice {
  const listed = devices.filter((device) => device.startsWith(kind)).map((device) => device.slice(kind.length));
  // A whole GPU has a number; `all` and parts of a GPU do not count.
  const numbers = listed.filter((device) => /^\d+$/.test(device)).toSorted((one, other) => Number(one) - Number(other));
  const usable = numbers.filter((number) => allowed?.includes(Number(number)) ?? true);
  const ids = usable.slice(0, gpus).map((number) => `${kind}${number}`);
  if (ids.length === gpus) return { request: { Driver: 'cdi', DeviceIDs: ids } };
  if (numbers.length > 0) {
    return {
      refusal: `the Docker daemon of this host lists only ${ids.join(', ') || 'others'}; use a host with more GPUs`,
    };
  }
  // What `docker run --gpus` asks for. How many GPUs there are is known only once a container starts.
  if (runtimes.includes(runtime) || hasHook) {
    const which = allowed === null ? { Count: gpus } : { DeviceIDs: allowed.slice(0, gpus).map(String) };
    return { request: { Driver: '', ...which, Capabilities: [['gpu']] } };
  }
  const others = listed.length === 0 ? '' : ` (only ${listed.map((device) => `${kind}${device}`).join(', ')})`;
  const text = `the Docker daemon of this host lists no whole GPU${others} and no runtime ${runtime}, and ${hook} is in none of ${folders.join(', ')}; install NVIDIA's container toolkit, run \`nvidia-ctk runtime configure\` and restart the daemon`;
  return { refusal: text };
}

/** Asks the daemon and this machine for their ways to GPUs, and chooses one. */
export async function findGpus(docker: Docker, { count, types = [] }: AskedGpus): Promise<GpuChoice> {
  const allowed = types.length === 0 ? null : allowedGpus(await listGpus(), count, types);
  if (allowed !== null && 'refusal' in allowed) return allowed;
  const { Runtimes, DiscoveredDevices } = daemonInfo.parse(await callDaemon(() => docker.info()));
  const devices = (DiscoveredDevices ?? []).filter(({ Source }) => Source === 'cdi').map(({ ID }) => ID);
  return chooseGpus({ runtimes: Object.keys(Runtimes), devices, hasHook: await findHook() }, count, allowed?.numbers);
}

/** Returns the numbers of the GPUs of this machine that are of one of the types, or why there are too few. */
export function allowedGpus(
  list: GpuList,
  count: number,
  types: readonly string[],
): { readonly numbers: readonly number[] } | { readonly refusal: string } {
  const wanted = types.join(' or ');
  if ('unknown' in list) {
    const text = `this host does not tell the types of its GPUs (${list.unknown}), of which it needs ${wanted} (environment.gpu_types); install nvidia-smi for the host worker, or use another host`;
    return { refusal: text };
  }
  const matching = list.gpus.filter((gpu) => types.some((type) => isOfType(gpu, type)));
  if (matching.length >= count) return { numbers: matching.map(({ index }) => index) };
  const has = matching.length === 0 ? 'none of them' : `only ${matching.length} of them`;
  const text = `the GPUs of this host are ${describeGpus(list.gpus)}: ${has} ${matching.length > 1 ? 'are' : 'is'} ${wanted} (environment.gpu_types); use a host with such GPUs`;
  return { refusal: text };
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
