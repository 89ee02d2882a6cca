import { z } from 'zod';
import type { SandboxLabels, SandboxSpec } from '../sandbox.ts';

export const stackLabel = 'temper.stack';
/** The label with the stack that built an image. It differs from `stackLabel` because containers inherit their image's labels. */
export const builderLabel = 'temper.built-by';

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
const storedSpec = z.object({ workdir: z.string(), pids: z.number(), diskMb: z.number() });
export type StoredSpec = z.infer<typeof storedSpec>;

export const labelsToDocker = ({
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
}: SandboxLabels) => ({
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

/** Parses the labels of a container. Undefined for a container that temper did not make. */
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

export const specToDocker = ({ workdir, pids, diskMb }: SandboxSpec) => ({
  'temper.spec': JSON.stringify({ workdir, pids, diskMb }),
});

export function storedSpecOf(found: Readonly<Record<string, string>>): StoredSpec | undefined {
  const text = found['temper.spec'];
  return text === undefined ? undefined : storedSpec.parse(JSON.parse(text));
}
