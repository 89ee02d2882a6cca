import type { FileTree } from '../sandbox/files.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** What lies in a workspace lies there again in our copy of its base commit and in its repository. */
const copies = 3;
/** Below this share of the limit it is not worth a look at the disk. */
const negligible = 1 / 20;

/**
 * MB in a sandbox before the policy's work begins: files of the task, and our copies of them. They are no use that an agent
 * or its tests could be ended for. 0 where that is negligible.
 */
export async function diskBefore(
  sandbox: Pick<Sandbox, 'diskUsage'>,
  workspace: FileTree,
  limitMb: number,
): Promise<number> {
  let bytes = 0;
  for (const {
    bytes: { byteLength },
  } of workspace.values())
    bytes += byteLength;
  const inImage = workspace.size === 0;
  if (!inImage && (bytes * copies) / 2 ** 20 < limitMb * negligible) return 0;
  return (await sandbox.diskUsage()).usedMb;
}
