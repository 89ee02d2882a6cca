import type { BlobRef } from './blob.ts';

/** What the agent changed, against the base commit that was recorded before it started. */
export interface Diff {
  readonly patch: BlobRef;
  readonly baseCommit: string;
  readonly files: number;
  /** Symlinks that lead out of the workspace are left out, and counted. */
  readonly dropped: number;
  /** The patch was above the limit and is kept as an empty one; its evaluation counts as failed. */
  readonly tooLarge: boolean;
}
