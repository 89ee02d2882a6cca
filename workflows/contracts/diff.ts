import type { BlobRef } from './blob.ts';
import type { Flag } from './flags.ts';

/** The agent's changes against the base commit that was recorded before it started. */
export interface Diff {
  readonly patch: BlobRef;
  readonly baseCommit: string;
  readonly files: number;
  /**
   * The number of paths left out: symlinks that point out of the workspace, names that git does not accept in a tree, and what could
   * not be read.
   */
  readonly dropped: number;
  /** Whether the diff exceeds a limit of size, number of files or time. It is then stored empty, and its evaluation fails. */
  readonly tooLarge: boolean;
  /**
   * Set if files of the workspace could not be read that a program can reach by their paths: they are as at the base commit, and all of
   * them are if nothing could be read.
   */
  readonly unread?: true;
  /** Suspected tricks in the paths that were left out. Omitted when there are none. */
  readonly flags?: readonly Flag[];
}
