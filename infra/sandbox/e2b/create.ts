import { setTimeout as delay } from 'node:timers/promises';
import { SandboxFailure } from '../failure.ts';
import { flatLabels, flatSpec, labelsOf, requireSameEpoch, stackLabel } from '../labels.ts';
import { requireName } from '../names.ts';
import type { SandboxSpec } from '../sandbox.ts';
import type { E2bApi, EnvdAccess, Listed } from './api.ts';
import { callApi, isAmbiguous, statusOf } from './failures.ts';
import { leaseAheadMs } from './lease.ts';
import { type ImageTemplate, missingTemplate, type Templates } from './templates.ts';

/** The metadata with the name of a sandbox; the server chooses the id. */
export const nameLabel = 'temper.name';

/** The oldest version of envd that can end a command's input. */
const oldestEnvd = [0, 5, 2] as const;
/**
 * The pauses in which a sandbox is looked for that may have been made although its creation failed: half a minute together, for
 * which a list may lag. A sandbox that is found later would be taken for the one that was made in its place.
 */
const adoptWaitsMs = [0, 500, 1_500, 4_000, 5_000, 10_000, 10_000];
/** The same after the answer that the server has no room, which leaves a sandbox only if it came from a server in between. */
const noRoomWaitsMs = adoptWaitsMs.slice(0, 4);

/** Finds the sandboxes of a name, the oldest first. There may be several, since the server knows no names. */
export async function findByName(api: Pick<E2bApi, 'find'>, stack: string, name: string): Promise<readonly Listed[]> {
  const found = await api.find({ [stackLabel]: stack, [nameLabel]: name });
  return found.toSorted(
    (a, b) => a.startedAt.getTime() - b.startedAt.getTime() || (a.sandboxId < b.sandboxId ? -1 : 1),
  );
}

/**
 * Returns the time of a lease that ends with the sandbox's time to live, but not before its next use, nor later than
 * its server allows.
 */
export const leaseUntil = (expiresAtMs: number, longestMs: number): number =>
  Math.min(longestMs, Math.max(expiresAtMs - Date.now(), leaseAheadMs));

export interface Ensuring {
  readonly api: E2bApi;
  readonly templates: Templates;
  /** The longest lease that the server gives. */
  readonly longestMs: number;
  /** The ids that this process got for names. A list may lack a new sandbox for a while. */
  readonly known: ReadonlyMap<string, string>;
}

export interface Found {
  readonly access: EnvdAccess;
  readonly leaseMs: number;
}

/**
 * Gets or creates the sandbox of this name. The server has neither names nor idempotent creation, so a sandbox is looked for
 * before and after: of several, the oldest stays and the others are ended, also those of another process.
 */
export async function ensureListed(
  { api, templates, longestMs, known }: Ensuring,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<Found> {
  requireName(spec.name);
  const { stack, expiresAtMs } = spec.labels;
  const leaseMs = leaseUntil(expiresAtMs, longestMs);
  const before =
    (await findKnown(api, known, spec.name)) ?? (await keepOldest(api, await findByName(api, stack, spec.name)));
  if (before) {
    requireOwn(spec, before);
    const access = await api.open(before.sandboxId, leaseMs);
    if (access) return { access, leaseMs };
  }
  const template = await templates.of(spec.image);
  const made = await createOrAdopt(api, { spec, template, leaseMs }, signal);
  const rivals = await findByName(api, stack, spec.name);
  const kept = (await keepOldest(api, rivals)) ?? (await api.info(made.id));
  if (kept === undefined) {
    const text = `the new sandbox ${spec.name} was gone at once; it is created again`;
    throw new SandboxFailure('SandboxUnavailable', text, { evidence: `sandbox id ${made.id}` });
  }
  const access = kept.sandboxId === made.id ? made : await api.open(kept.sandboxId, leaseMs);
  if (access === undefined) throw new SandboxFailure('SandboxUnavailable', `sandbox ${spec.name} was ended by another`);
  if (kept.sandboxId !== made.id && !rivals.some(({ sandboxId }) => sandboxId === made.id)) await api.kill(made.id);
  await requireSize(api, { spec, template, listed: kept });
  return { access, leaseMs };
}

/** Returns the sandbox that this process has got for a name, if it still is there. */
export async function findKnown(
  api: Pick<E2bApi, 'info'>,
  known: ReadonlyMap<string, string>,
  name: string,
): Promise<Listed | undefined> {
  const id = known.get(name);
  return id === undefined ? undefined : api.info(id);
}

/** Ends all but the first of the sandboxes with one name, and returns the first. */
async function keepOldest(api: Pick<E2bApi, 'kill'>, found: readonly Listed[]): Promise<Listed | undefined> {
  const [oldest, ...younger] = found;
  for (const { sandboxId } of younger) await api.kill(sandboxId);
  return oldest;
}

async function createOrAdopt(
  api: E2bApi,
  {
    spec,
    template,
    leaseMs,
  }: { readonly spec: SandboxSpec; readonly template: ImageTemplate; readonly leaseMs: number },
  signal: AbortSignal,
): Promise<EnvdAccess> {
  const { name, labels } = spec;
  const metadata = { ...flatLabels(labels), ...flatSpec(spec), [nameLabel]: name, ...template.metadata };
  const create = async (): Promise<EnvdAccess> => {
    try {
      return await api.create({ template: template.name, metadata, leaseMs }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (statusOf(error) === 404 || statusOf(error) === 403) throw missingTemplate(spec.image, template.name, error);
      if (!isAmbiguous(error)) throw error;
      for (const waitMs of statusOf(error) === 503 ? noRoomWaitsMs : adoptWaitsMs) {
        await delay(waitMs, undefined, { signal });
        const oldest = await keepOldest(api, await findByName(api, labels.stack, name));
        const access = oldest && (await api.open(oldest.sandboxId, leaseMs));
        if (access) return access;
      }
      throw error;
    }
  };
  return callApi(`create sandbox ${name}`, create);
}

function requireOwn(spec: SandboxSpec, { metadata }: Listed): void {
  const labels = labelsOf(metadata);
  if (labels !== undefined) {
    requireSameEpoch(spec.name, spec.labels, labels);
    return;
  }
  const text = `a sandbox that temper did not make has the name ${spec.name} in its metadata; remove it`;
  throw new SandboxFailure('SandboxConflict', text);
}

/** Ends a sandbox whose template is too small for its task or too old, since only another template helps. */
async function requireSize(
  api: Pick<E2bApi, 'kill'>,
  { spec, template, listed }: { readonly spec: SandboxSpec; readonly template: ImageTemplate; readonly listed: Listed },
): Promise<void> {
  const { cpuCount, memoryMB, envdVersion } = listed;
  const problems = [
    ...(memoryMB < spec.memoryMb ? [`${memoryMB} MB of memory, and the task needs ${spec.memoryMb}`] : []),
    ...(cpuCount < spec.cpus ? [`${cpuCount} CPUs, and the task needs ${spec.cpus}`] : []),
    ...(isOlder(envdVersion) ? [`envd ${envdVersion}, and ${oldestEnvd.join('.')} is the oldest that works`] : []),
  ];
  if (problems.length === 0) return;
  await api.kill(listed.sandboxId);
  const text = `sandbox ${spec.name}: template ${template.name} has ${problems.join('; ')}; build it again`;
  throw new SandboxFailure('UnsupportedTask', text);
}

function isOlder(version: string): boolean {
  const parts = version.split('.').map(Number);
  for (const [index, least] of oldestEnvd.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}
