import type { BlobRef } from '../../../workflows/contracts/blob.ts';
import type { FileTree } from '../../sandbox/file-tree.ts';
import type { OpenSession } from '../control.ts';
import type { HostToolContext } from './host-tool.ts';

/** Reads the files of a packed task that are for host tools. */
export type TaskFiles = (bundle: BlobRef) => Promise<FileTree>;

/** Returns the task of a session as host tools see it. Its files are read when a tool asks for one. */
export const taskOf = ({ task }: OpenSession, read: TaskFiles): HostToolContext['task'] => ({
  id: task?.id ?? '',
  file: async (path) => (task === undefined ? null : ((await read(task.bundle)).get(path)?.bytes ?? null)),
});
