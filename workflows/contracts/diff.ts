import type { BlobRef } from './blob.ts';
import type { Flag } from './flags.ts';

/** What the agent changed, against the base commit that was recorded before it started. */
export interface Diff {
  readonly patch: BlobRef;
  readonly baseCommit: string;
  readonly files: number;
  /** Symlinks that lead out of the workspace, and names that git takes into no tree, are left out, and counted. */
  readonly dropped: number;
  /** It was above a limit of size, number of files or time, and is kept as an empty one; its evaluation counts as failed. */
  readonly tooLarge: boolean;
  /** What looks like a trick in what was left out. Absent: nothing, or an older worker. */
  readonly flags?: readonly Flag[];
}
