/** Sandbox labels as Docker labels, and back; what carries no readable labels is not ours. */
import { z } from 'zod';
import type { SandboxLabels, SandboxSpec } from '../sandbox.ts';

export const stackLabel = 'temper.stack';
/** The stack that built an image. Containers inherit the labels of their image: it can't be the one above. */
export const builderLabel = 'temper.built-by';

const labels = z.object({
  'temper.stack': z.string(),
  'temper.run': z.string(),
  'temper.rollout': z.string(),
  'temper.epoch': z.coerce.number().int(),
  'temper.purpose': z.enum(['agent', 'evaluation']),
  'temper.sweep': z.literal('true').optional(),
  'temper.expires-at-ms': z.coerce.number(),
});

/** What a process that did not make the sandbox needs to work with it. */
const kept = z.object({ workdir: z.string(), pids: z.number(), diskMb: z.number() });
export type KeptSpec = z.infer<typeof kept>;

export const labelsToDocker = ({ stack, run, rollout, epoch, purpose, sweep, expiresAtMs }: SandboxLabels) => ({
  [stackLabel]: stack,
  'temper.run': run,
  'temper.rollout': rollout,
  'temper.epoch': String(epoch),
  'temper.purpose': purpose,
  ...(sweep && { 'temper.sweep': 'true' }),
  'temper.expires-at-ms': String(expiresAtMs),
});

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
    expiresAtMs: data['temper.expires-at-ms'],
  };
}

export const specToDocker = ({ workdir, pids, diskMb }: SandboxSpec) => ({
  'temper.spec': JSON.stringify({ workdir, pids, diskMb }),
});

export function keptSpecOf(found: Readonly<Record<string, string>>): KeptSpec | undefined {
  const text = found['temper.spec'];
  return text === undefined ? undefined : kept.parse(JSON.parse(text));
}
