import { z } from 'zod';
import { SandboxFailure } from './failure.ts';
import type { SandboxLabels, SandboxSpec } from './sandbox.ts';

export const stackLabel = 'temper.stack';

const labels = z.object({
  'temper.stack': z.string(),
  'temper.run': z.string(),
  'temper.rollout': z.string(),
  'temper.epoch': z.coerce.number().int(),
  'temper.purpose': z.enum(['agent', 'evaluation']),
  'temper.sweep': z.literal('true').optional(),
  'temper.channel': z.enum(['socket', 'stream']).optional(),
  'temper.share': z.string().optional(),
  'temper.expires-at-ms': z.coerce.number(),
  'temper.fence': z.string().optional(),
});

/** The part of a spec that a process needs to work with a sandbox that another process made. */
const storedSpec = z.object({
  workdir: z.string(),
  pids: z.number(),
  diskMb: z.number(),
  root: z.literal(true).exactOptional(),
  /** Whether it has services beside it. */
  services: z.literal(true).exactOptional(),
});
export type StoredSpec = z.infer<typeof storedSpec>;

/** Returns labels as texts by name, as container engines keep them. */
export const flatLabels = ({
  stack,
  run,
  rollout,
  epoch,
  purpose,
  sweep,
  share,
  channel,
  expiresAtMs,
  fence,
}: SandboxLabels): Readonly<Record<string, string>> => ({
  [stackLabel]: stack,
  'temper.run': run,
  'temper.rollout': rollout,
  'temper.epoch': String(epoch),
  'temper.purpose': purpose,
  ...(sweep && { 'temper.sweep': 'true' }),
  ...(channel && { 'temper.channel': channel }),
  ...(share !== undefined && { 'temper.share': share }),
  'temper.expires-at-ms': String(expiresAtMs),
  ...(fence !== undefined && { 'temper.fence': fence }),
});

/** Parses the labels that `flatLabels` made. Undefined for those of something that temper did not make. */
export function labelsOf(found: Readonly<Record<string, string>>): SandboxLabels | undefined {
  const parsed = labels.safeParse(found);
  if (!parsed.success) return undefined;
  const { data } = parsed;
  return {
    stack: data['temper.stack'],
    run: data['temper.run'],
    rollout: data['temper.rollout'],
    epoch: data['temper.epoch'],
    purpose: data['temper.purpose'],
    ...(data['temper.sweep'] !== undefined && { sweep: true }),
    ...(data['temper.channel'] !== undefined && { channel: data['temper.channel'] }),
    ...(data['temper.share'] !== undefined && { share: data['temper.share'] }),
    expiresAtMs: data['temper.expires-at-ms'],
    ...(data['temper.fence'] !== undefined && { fence: data['temper.fence'] }),
  };
}

export const flatSpec = ({ workdir, pids, diskMb, root, beside }: SandboxSpec): Readonly<Record<string, string>> => ({
  'temper.spec': JSON.stringify({ workdir, pids, diskMb, ...(root && { root }), ...(beside && { services: true }) }),
});

export function storedSpecOf(found: Readonly<Record<string, string>>): StoredSpec | undefined {
  const text = found['temper.spec'];
  return text === undefined ? undefined : storedSpec.parse(JSON.parse(text));
}

/**
 * Throws `SandboxConflict` unless both labels name the same rollout and epoch, so that a new epoch never gets a sandbox that an
 * earlier one left under the same name.
 */
export function requireSameEpoch(name: string, asked: SandboxLabels, found: SandboxLabels): void {
  const keys = ['stack', 'run', 'rollout', 'epoch', 'purpose'] as const;
  const differing = keys.filter((key) => asked[key] !== found[key]);
  if (differing.length === 0) return;
  const differences = differing.map((key) => `${key} ${asked[key]}, got ${found[key]}`).join('; expected ');
  throw new SandboxFailure(
    'SandboxConflict',
    `sandbox ${name} belongs to another rollout: expected ${differences}; remove it or use another name`,
  );
}
