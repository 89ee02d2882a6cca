import type { Priority } from '@temporalio/common';
import { shortKey } from './ids.ts';
import { number } from './input.ts';

/** The weight of a run or sweep among those that want slots. */
export const weight = number(0.01, 1000).default(1);

/** The share of a run or sweep as its memo shows it, so that hosts find it in the list of what is open. */
export interface Share {
  /** The end of the key of the run or sweep. */
  readonly key: string;
  readonly weight: number;
}

export const shareMemo = (key: string, of: number): { readonly share: Share } => ({
  share: { key: shortKey(key), weight: of },
});

export function isShare(value: unknown): value is Share {
  if (typeof value !== 'object' || value === null || !('key' in value) || !('weight' in value)) return false;
  return typeof value.key === 'string' && typeof value.weight === 'number' && value.weight > 0;
}

/**
 * The priority of the rollouts of a run or sweep. Its fairness key tells hosts and task queues whose they are; a server with
 * fairness turned on also orders the backlog of shared queues (images, evaluations) by the weights.
 */
export const sharedPriority = (key: string, of: number): Priority => ({
  fairnessKey: shortKey(key),
  fairnessWeight: of,
});
