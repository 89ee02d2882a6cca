import type { SandboxKind } from './sandbox-kinds.ts';

/**
 * All that an agent changed in its sandbox, files anywhere included, as its tests get it in a fresh sandbox of the same image.
 * History names the parts themselves, so that retention finds them.
 */
export interface Snapshot {
  /** The kind of the agent's sandbox, which is that of its evaluation. */
  readonly kind: SandboxKind;
  /** The digests of its parts, in order: a compressed tar, cut into blobs of at most 32 MB. */
  readonly parts: readonly string[];
  /** The number of files, links and directories. */
  readonly entries: number;
  /** Size of the files in bytes, before compression. */
  readonly bytes: number;
  /** The limit in bytes, if the changes exceed it. The snapshot is then stored empty, and its evaluation fails. */
  readonly above?: number;
  /** The reason why the changes could not be read. The snapshot is then stored empty, and its evaluation fails. */
  readonly unread?: string;
}
