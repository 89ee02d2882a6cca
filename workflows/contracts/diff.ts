import type { BlobRef } from './blob.ts';
import type { Flag } from './flags.ts';

/** The agent's changes against the base commit that was recorded before it started. */
export interface Diff {
  readonly patch: BlobRef;
  readonly baseCommit: string;
  readonly files: number;
  /** The number of paths left out: symlinks that point out of the workspace, and names that git does not accept in a tree. */
  readonly dropped: number;
  /** Whether the diff exceeds a limit of size, number of files or time. It is then stored empty, and its evaluation fails. */
  readonly tooLarge: boolean;
  /** Suspected tricks in the paths that were left out. Omitted when there are none. */
  readonly flags?: readonly Flag[];
}
