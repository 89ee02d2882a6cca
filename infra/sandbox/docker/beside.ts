import type Docker from 'dockerode';
import { z } from 'zod';
import { labelsOf, type StoredSpec, stackLabel } from '../labels.ts';
import type { SandboxInfo } from '../sandbox.ts';
import { callDaemon, daemonStatus, orIfMissing } from './daemon.ts';
import { ofSandboxLabel } from './service-options.ts';

/*
 * What belongs to a sandbox beside its own container: the containers of its services, and their volumes. All carry its labels.
 */

interface FoundSandbox {
  readonly stack: string;
  readonly name: string;
  /** The sandbox's own container; undefined if it is gone, which its services may have outlived. */
  readonly container: { readonly id: string; readonly spec: StoredSpec } | undefined;
}

/** Removes a sandbox: its services first, so that one whose removal is interrupted is still listed. Returns whether there was one. */
export async function removeSandbox(docker: Docker, { stack, name, container }: FoundSandbox): Promise<boolean> {
  const mayHaveServices = container === undefined || container.spec.services === true;
  const hadServices = mayHaveServices && (await removeServices(docker, stack, name));
  if (container) await removeContainer(docker, container.id);
  const hadVolumes = mayHaveServices && (await removeVolumes(docker, stack, name));
  return container !== undefined || hadServices || hadVolumes;
}

/** Removes the services of a sandbox of this stack. Returns whether there were any. */
async function removeServices(docker: Docker, stack: string, sandbox: string): Promise<boolean> {
  const filters = { label: [`${ofSandboxLabel}=${sandbox}`, `${stackLabel}=${stack}`] };
  const found = await callDaemon(() => docker.listContainers({ all: true, filters }));
  await Promise.all(found.map(({ Id }) => removeContainer(docker, Id)));
  return found.length > 0;
}

/** Removes the volumes of a sandbox of this stack, whose containers are gone. Returns whether there were any. */
async function removeVolumes(docker: Docker, stack: string, sandbox: string): Promise<boolean> {
  const volumes = await listVolumes(docker, stack, [`${ofSandboxLabel}=${sandbox}`]);
  for (const { Name } of volumes) await callDaemon(() => docker.getVolume(Name).remove()).catch(orIfMissing);
  return volumes.length > 0;
}

/** Removes a container by force: the end of PID 1 ends the whole pid namespace. */
async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  try {
    await callDaemon(() => container.remove({ force: true, v: true }));
  } catch (error) {
    if (daemonStatus(error) === 404) return;
    if (daemonStatus(error) !== 409) throw error;
    // A concurrent removal is in progress.
    await callDaemon(() => container.wait({ condition: 'removed' })).catch(orIfMissing);
  }
}

/** Lists the sandboxes of a stack. A sandbox of which only services or volumes are left is listed as one that does not run. */
export async function listSandboxes(docker: Docker, stack: string): Promise<readonly SandboxInfo[]> {
  const filters = { label: [`${stackLabel}=${stack}`] };
  const containers = await callDaemon(() => docker.listContainers({ all: true, filters }));
  const volumes = await listVolumes(docker, stack, []);
  const found = new Map<string, SandboxInfo>();
  const add = (entry: Entry): void => {
    const info = infoOf(entry);
    if (info !== undefined && (entry.isOwn || !found.has(info.name))) found.set(info.name, info);
  };
  for (const { Names, Labels, Created, State } of containers) {
    const of = Labels[ofSandboxLabel] || undefined;
    const name = of ?? Names[0]?.replace(/^\//, '');
    const isOwn = of === undefined;
    add({ name, labels: Labels, createdAtMs: Created * 1_000, running: isOwn && State === 'running', isOwn });
  }
  for (const { Labels, CreatedAt } of volumes) {
    const createdAtMs = CreatedAt === undefined ? Date.now() : Date.parse(CreatedAt);
    add({ name: Labels[ofSandboxLabel], labels: Labels, createdAtMs, running: false, isOwn: false });
  }
  return [...found.values()];
}

interface Entry {
  readonly name: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly running: boolean;
  /** Whether it is the sandbox's own container. */
  readonly isOwn: boolean;
}

function infoOf({ name, labels: flat, createdAtMs, running }: Entry): SandboxInfo | undefined {
  const labels = labelsOf(flat);
  return labels === undefined || name === undefined
    ? undefined
    : { name, kind: 'docker', labels, createdAtMs, running };
}

const listedVolumes = z.object({
  Volumes: z
    .array(
      z.object({
        Name: z.string(),
        Labels: z.record(z.string(), z.string()).nullable().default({}),
        CreatedAt: z.string().optional(),
      }),
    )
    .nullable(),
});

async function listVolumes(docker: Docker, stack: string, labels: readonly string[]) {
  const filters = JSON.stringify({ label: [`${stackLabel}=${stack}`, ...labels] });
  const { Volumes } = listedVolumes.parse(await callDaemon(() => docker.listVolumes({ filters })));
  return (Volumes ?? []).map((volume) => ({ ...volume, Labels: volume.Labels ?? {} }));
}
