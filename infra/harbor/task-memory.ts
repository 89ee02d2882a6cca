import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { mostMemoryDirectories, type Task } from '../../workflows/contracts/task.ts';
import type { MainContainer } from '../compose/main-container.ts';
import { hiddenBy, sizedDirectories } from '../compose/memory.ts';
import { isAboveAny, isWithinAny } from '../sandbox/changes.ts';
import { usualSharedMemoryMb } from '../sandbox/memory-directory.ts';
import type { TaskToml } from './task-toml.ts';

/**
 * Returns what a sandbox has in memory, by `task.toml` and the compose file. Throws UnsupportedTask for more than its memory, and
 * for a directory that would hide the files of the task or of temper.
 */
export function memoryOf(
  { environment }: TaskToml,
  { memory }: Pick<MainContainer, 'memory'>,
  { workdir, memoryMb }: Pick<Task, 'workdir' | 'memoryMb'>,
): Pick<Task, 'sharedMemoryMb' | 'tmpfs'> {
  const own = environment.tmpfs.map(({ path, size_mb: sizeMb = null }) => ({ path, sizeMb }));
  const directories = [...memory.tmpfs, ...own];
  for (const directory of directories) {
    const { path } = directory;
    if (isWithinAny(path, [workdir]) || isAboveAny(path, [workdir])) {
      throw unsupported('tmpfs', `no directory in memory in or above the workdir ${workdir}, where the work is`, path);
    }
    const hidden = hiddenBy(directory);
    if (hidden !== undefined)
      throw unsupported('tmpfs', `no directory in memory at ${hidden}, which temper uses`, path);
  }
  if (directories.length > mostMemoryDirectories) {
    throw unsupported('tmpfs', `at most ${mostMemoryDirectories} directories in memory`, String(directories.length));
  }
  const shared = environment.shared_memory_mb ?? memory.sharedMemoryMb ?? usualSharedMemoryMb;
  if (shared > Math.max(usualSharedMemoryMb, memoryMb)) {
    throw unsupported('shm_size', `at most the memory of the sandbox, ${memoryMb} MB`, `${shared} MB`);
  }
  return {
    ...(shared > usualSharedMemoryMb && { sharedMemoryMb: shared }),
    ...(directories.length > 0 && { tmpfs: [...sizedDirectories(directories, memoryMb)] }),
  };
}

const unsupported = (field: string, expected: string, got: string): TemperFailure =>
  new TemperFailure('UnsupportedTask', `${field}: expected ${expected}, got ${got}`);
