import type Docker from 'dockerode';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import type { Ulimit } from '../../../workflows/contracts/task.ts';
import { flatLabels } from '../labels.ts';
import type { MemoryDirectory } from '../memory-directory.ts';
import type { SandboxSpec } from '../sandbox.ts';
import type { Beside, SandboxService, ServiceHealthCheck, ServiceVolume } from '../service.ts';
import { rootCapabilities } from '../shell/root-capabilities.ts';

/** The label with the name of the sandbox that a service or a volume belongs to. */
export const ofSandboxLabel = 'temper.of-sandbox';

const megabyte = 2 ** 20;
const nanosecondsPerMs = 1_000_000;
const pids = 512;
const retries = 10;
/** The shortest pause between two checks of a service. Each check is a command that the daemon starts, on the host's CPU. */
const leastIntervalNs = 1_000 * nanosecondsPerMs;
/** The size of a service's log, of which only the end is read. */
const logSize = '4m';

/** The name of the container of a service, or of a volume. */
export const nameBeside = (sandbox: string, name: string): string => `${sandbox}.${name}`;

/** The labels of what belongs to a sandbox: those of the sandbox, so that a reaper that finds it alone can decide. */
export const labelsBeside = ({ name, labels }: SandboxSpec): Readonly<Record<string, string>> => ({
  ...flatLabels(labels),
  [ofSandboxLabel]: name,
});

/** Returns the mounts of named volumes. */
export const volumeBinds = (sandbox: string, volumes: readonly ServiceVolume[]): readonly string[] =>
  volumes.flatMap(({ name, target, readOnly }) =>
    name === null ? [] : [`${nameBeside(sandbox, name)}:${target}${readOnly ? ':ro' : ''}`],
  );

/** Describes directories in memory, in which every account may write and run programs. */
export const memoryDirectories = (directories: readonly MemoryDirectory[]): Readonly<Record<string, string>> =>
  Object.fromEntries(directories.map(({ path, sizeMb }) => [path, `size=${sizeMb}m,mode=1777,exec,nosuid,nodev`]));

/** Describes limits of processes. */
export const ulimitsOf = (ulimits: readonly Ulimit[]) =>
  ulimits.map(({ name, soft, hard }) => ({ Name: name, Soft: soft, Hard: hard }));

/** Whether the daemon did not start a container because it may not set the limits that its task asks for (`CAP_SYS_RESOURCE`). */
export const refusedUlimits = (error: unknown): boolean => /setting rlimit/i.test(errorMessage(error));

/** A sandbox's own container, which runs. */
export interface SandboxContainer {
  readonly id: string;
  readonly spec: SandboxSpec & { readonly beside: Beside };
  /** The names of the variables that its image sets. */
  readonly variables: readonly string[];
  /** The OCI runtime of all of its containers; empty for the daemon's own. */
  readonly runtime: string;
}

/**
 * Describes the container of a service. It shares the loopback device of the sandbox, which has no other, and is root without
 * more rights than a sandbox whose task asks for root.
 */
export function serviceOptions(
  { id, spec, runtime }: SandboxContainer,
  service: SandboxService,
  ofImage: ImageHealthCheck,
) {
  const { entrypoint, command, workdir, user, env, healthCheck, volumes, tmpfs, restarts, dropped } = service;
  const anonymous = volumes.filter(({ name }) => name === null).map(({ target }) => [target, {}] as const);
  return {
    name: nameBeside(spec.name, service.name),
    Image: service.image,
    Labels: { ...labelsBeside(spec) },
    ...(entrypoint !== null && { Entrypoint: [...entrypoint] }),
    ...(command !== null && { Cmd: [...command] }),
    ...(workdir !== null && { WorkingDir: workdir }),
    ...(user !== null && { User: user }),
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    Tty: service.tty,
    OpenStdin: service.stdin,
    ...((healthCheck !== null || ofImage !== undefined) && { Healthcheck: healthCheckOf(healthCheck ?? {}, ofImage) }),
    Volumes: Object.fromEntries(anonymous),
    HostConfig: {
      NetworkMode: `container:${id}`,
      CapDrop: ['ALL'],
      CapAdd: rootCapabilities.filter((one) => !dropped.includes('ALL') && !dropped.includes(one)),
      ...(service.init && { Init: true }),
      ...(service.ulimits.length > 0 && { Ulimits: ulimitsOf(service.ulimits) }),
      ...(runtime !== '' && { Runtime: runtime }),
      SecurityOpt: ['no-new-privileges'],
      IpcMode: 'private',
      PidsLimit: pids,
      Memory: service.memoryMb * megabyte,
      MemorySwap: service.memoryMb * megabyte,
      NanoCpus: Math.round(service.cpus * 1e9),
      ShmSize: service.sharedMemoryMb * megabyte,
      Tmpfs: memoryDirectories(tmpfs),
      Binds: [...volumeBinds(spec.name, volumes)],
      ...(restarts && { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: retries } }),
      LogConfig: { Type: 'json-file', Config: { 'max-size': logSize, 'max-file': '1' } },
    },
  };
}

/** The health check of a service's image, as the daemon describes it; undefined if it has none. */
export type ImageHealthCheck = Docker.HealthConfig | undefined;

/** Describes the check of a service. What it leaves out is the image's. */
function healthCheckOf(check: ServiceHealthCheck, ofImage: ImageHealthCheck = {}): Docker.HealthConfig {
  const intervalNs = check.intervalMs === undefined ? ofImage.Interval : check.intervalMs * nanosecondsPerMs;
  const interval = slowed(intervalNs);
  const startInterval = slowed(ofImage.StartInterval);
  return {
    ...(check.test !== undefined && { Test: [...check.test] }),
    ...(interval !== undefined && { Interval: interval }),
    ...(startInterval !== undefined && { StartInterval: startInterval }),
    ...(check.timeoutMs !== undefined && { Timeout: check.timeoutMs * nanosecondsPerMs }),
    ...(check.startPeriodMs !== undefined && { StartPeriod: check.startPeriodMs * nanosecondsPerMs }),
    ...(check.retries !== undefined && { Retries: check.retries }),
  };
}

/** Returns an interval that is not too short. Undefined or 0 leaves the interval to the daemon. */
const slowed = (intervalNs: number | undefined): number | undefined =>
  intervalNs === undefined || intervalNs === 0 ? undefined : Math.max(leastIntervalNs, intervalNs);
