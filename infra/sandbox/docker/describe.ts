import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { SandboxFailure } from '../failure.ts';
import type { SandboxDescription } from '../sandbox.ts';
import { callDaemon, daemonStatus, installPs } from './daemon.ts';
import type { DiskQuota } from './disk-quota.ts';
import type { DockerSettings } from './settings.ts';

/** The directories in which a daemon looks for programs. */
const systemDirectories = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** Describes what containers of a daemon protect, and says why it is not ready if it is not. */
export async function describeDocker(
  docker: Docker,
  { runtime }: DockerSettings,
  quota: () => Promise<DiskQuota>,
  directories: readonly string[] = systemDirectories,
): Promise<SandboxDescription> {
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
      'claims, results and logs of a task whose agent is root (`user`): it can end its sandbox, which is scored, or change them',
    ],
  };
  try {
    const { Version } = await callDaemon(() => docker.version());
    const refused = (await refusedRuntime(docker, runtime)) ?? lacksPs(docker, directories);
    if (refused !== null) return { ...common, ready: false, summary: refused };
    const { enforced, driver } = await quota();
    const protects = enforced
      ? [...common.protects, `the disk: the kernel limits it, by quotas of ${driver}`]
      : common.protects;
    const doesNotProtect = enforced ? common.doesNotProtect : [...common.doesNotProtect, diskGap(driver)];
    const summary = `Docker ${Version}${runtime === '' ? '' : `, runtime ${runtime}`}`;
    return { ...common, ready: true, summary, protects, doesNotProtect };
  } catch (error) {
    // A daemon that answers with an error, for example while it starts, is not ready either.
    if (!(error instanceof SandboxFailure) && daemonStatus(error) === undefined) throw error;
    return {
      ...common,
      ready: false,
      mayComeUp: true,
      summary: errorMessage(error),
    };
  }
}

const diskGap = (driver: string): string =>
  `the disk immediately: its use is looked at every two seconds, since the kernel has no quota for containers of ${driver} (it has one for overlay2 on xfs, mounted with pquota), while the size of a single file is limited at once`;

/** Says that a daemon of this machine has no `ps`; null if it has one, or is on another machine, which only its use shows. */
function lacksPs({ modem }: Docker, directories: readonly string[]): string | null {
  const isHere = 'socketPath' in modem && typeof modem.socketPath === 'string' && process.platform === 'linux';
  return isHere && !directories.some((directory) => existsSync(join(directory, 'ps'))) ? installPs : null;
}

const daemonInfo = z.object({ Runtimes: z.record(z.string(), z.unknown()).default({}) });

/** Runtimes whose containers have a kernel of their own, so that the host sees none of their processes. */
const ownKernel = /runsc|gvisor|kata|firecracker/i;

/**
 * Says why sandboxes can't run in the runtime; null if they can. The daemon itself finds the runtimes that are named as a shim of
 * containerd, and so does not list them.
 */
async function refusedRuntime(docker: Docker, runtime: string): Promise<string | null> {
  if (ownKernel.test(runtime))
    return `sandboxes can't run in ${runtime} (TEMPER_RUNTIME), whose containers have a kernel of their own: temper ends an agent's processes from the host, which sees none of them; use a runtime that shares the host's kernel, such as crun`;
  if (runtime === '' || runtime.startsWith('io.containerd.')) return null;
  const known = Object.keys(daemonInfo.parse(await callDaemon(() => docker.info())).Runtimes);
  if (known.includes(runtime)) return null;
  return `the Docker daemon knows no runtime ${runtime} (TEMPER_RUNTIME), only ${known.join(', ')}; add it to the daemon's configuration`;
}
