import type { Segment } from './trace.ts';

/** A trained segment with what it needs; `rollout` and `group` index into the batch's lists. */
export interface BatchSegment {
  readonly rollout: number;
  readonly segment: Pick<Segment, 'tokens' | 'mask' | 'logprobs' | 'versions'>;
}

/** The pinned batch of a step: a blob, whose digest is in history; the same bytes on any retry. */
export interface Batch {
  readonly runKey: string;
  readonly step: number;
  /** Rollouts whose rewards were compared, in order of group and rollout. */
  readonly rollouts: readonly {
    readonly rollout: string;
    readonly group: number;
    readonly reward: number;
  }[];
  readonly segments: readonly BatchSegment[];
}

/** What `normalise` adds: one advantage per rollout of the batch, and the weight of each of its trained tokens. */
export interface Advantages {
  readonly batch: string;
  readonly advantages: readonly number[];
  readonly tokenWeights: readonly number[];
}
