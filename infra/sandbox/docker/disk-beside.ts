import type Docker from 'dockerode';
import { z } from 'zod';
import { callDaemon } from './daemon.ts';
import { readDiskUsage } from './disk-usage.ts';
import { ofSandboxLabel } from './service-options.ts';

/** Returns the bytes that the services of a sandbox have written, also in volumes, and also those of services that have ended. */
export type BytesBeside = (sandbox: string) => Promise<number>;

/** The age at which the sizes of volumes are measured again: the daemon walks through all of its host's volumes for that. */
const freshMs = 5_000;

const containers = z.array(
  z.object({
    SizeRw: z.number().default(0),
    Mounts: z.array(z.object({ Type: z.string(), Name: z.string().optional() })).default([]),
  }),
);
const usage = z.object({
  Volumes: z.array(z.object({ Name: z.string(), UsageData: z.object({ Size: z.number() }).nullish() })).nullish(),
});

/** Creates the measurement of what services write, which all sandboxes of a daemon share. */
export function createBytesBeside(docker: Docker): BytesBeside {
  let measured: { readonly atMs: number; readonly sizes: Promise<ReadonlyMap<string, number>> } | null = null;
  function volumeSizes(): Promise<ReadonlyMap<string, number>> {
    const nowMs = performance.now();
    if (measured !== null && nowMs - measured.atMs < freshMs) return measured.sizes;
    const sizes = measureVolumes(docker);
    measured = { atMs: nowMs, sizes };
    sizes.catch(() => {
      measured = null;
    });
    return sizes;
  }
  return async (sandbox) => {
    const filters = { label: [`${ofSandboxLabel}=${sandbox}`] };
    const found = containers.parse(await callDaemon(() => docker.listContainers({ all: true, filters, size: true })));
    const names = new Set(
      found.flatMap(({ Mounts }) => Mounts.flatMap(({ Type, Name }) => (Type === 'volume' && Name ? [Name] : []))),
    );
    const sizes = names.size === 0 ? new Map<string, number>() : await volumeSizes();
    const ofVolumes = [...names].map((name) => sizes.get(name) ?? 0);
    return [...found.map(({ SizeRw: bytes }) => bytes), ...ofVolumes].reduce((sum, bytes) => sum + bytes, 0);
  };
}

async function measureVolumes(docker: Docker): Promise<ReadonlyMap<string, number>> {
  const { Volumes } = usage.parse(await readDiskUsage(docker));
  return new Map((Volumes ?? []).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]));
}
