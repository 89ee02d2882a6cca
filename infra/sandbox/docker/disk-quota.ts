import { readFile } from 'node:fs/promises';
import type Docker from 'dockerode';
import { z } from 'zod';
import { isWithin } from '../changes.ts';
import { callDaemon } from './daemon.ts';

/** The limit that the kernel can set to a container's disk. */
export interface DiskQuota {
  readonly enforced: boolean;
  /** The daemon's directory of containers. */
  readonly root: string;
  /** The storage driver, and what is below it. */
  readonly driver: string;
}

const storage = z.object({
  Driver: z.string(),
  DriverStatus: z
    .array(z.array(z.string()))
    .nullish()
    .transform((lines) => new Map((lines ?? []).map(([name = '', value = '']) => [name, value]))),
  DockerRootDir: z.string().default(''),
});
/** Finds out whether the daemon's storage driver can limit the disk of a container. */
export async function findDiskQuota(docker: Docker, mountTable = '/proc/self/mounts'): Promise<DiskQuota> {
  const { Driver, DriverStatus, DockerRootDir: root } = storage.parse(await callDaemon(() => docker.info()));
  const below = DriverStatus.get('Backing Filesystem');
  const driver = below === undefined ? Driver : `${Driver} on ${below}`;
  // The quotas of btrfs count the image, too.
  if (Driver !== 'overlay2' || below !== 'xfs') return { enforced: false, root, driver };
  const options = optionsOf(await readFile(mountTable, 'utf8').catch(() => ''), root);
  if (options.some((one) => one === 'prjquota' || one === 'pquota')) return { enforced: true, root, driver };
  return { enforced: false, root, driver: `${driver} without the mount option pquota` };
}

/** Creates the function that finds out once what the daemon's storage driver can do. */
export function createDiskQuota(docker: Docker): () => Promise<DiskQuota> {
  let found: Promise<DiskQuota> | undefined;
  return () => {
    found ??= findDiskQuota(docker).catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    return found;
  };
}

/** Returns the mount options of the file system that a directory is on. */
function optionsOf(mounts: string, directory: string): readonly string[] {
  const found = mounts
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, at = '']) => at !== '' && isWithin(directory, at))
    .sort(([, one = ''], [, other = '']) => one.length - other.length)
    .at(-1);
  return found?.[3]?.split(',') ?? [];
}

/** The MB by which the kernel's limit is above the sandbox's own, so that the sandbox reaches that and its status says so. */
const headroomMb = 256;

/** Returns the options of a container by which the kernel limits its disk. */
export const quotaOptions = ({ enforced }: DiskQuota, diskMb: number) =>
  enforced ? { StorageOpt: { size: `${Math.ceil(diskMb + Math.max(headroomMb, diskMb / 4))}m` } } : {};
