import type { Segment } from './trace.ts';

/** A trained segment with its tokens. `rollout` is an index into the rollouts of the batch. */
export interface BatchSegment {
  readonly rollout: number;
  readonly segment: Pick<Segment, 'tokens' | 'mask' | 'logprobs' | 'versions'>;
}

/** The pinned batch of a step: a blob whose digest is in history, so that a retry reads the same bytes. */
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

/** The result of `normalise`: for each rollout of the batch its advantage and the weight of each of its trained tokens. */
export interface Advantages {
  /** The digest of the batch. */
  readonly batch: string;
  readonly advantages: readonly number[];
  readonly tokenWeights: readonly number[];
}
