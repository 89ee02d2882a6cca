/** The size of `/dev/shm` of a sandbox whose task names none, in MB. */
export const usualSharedMemoryMb = 64;

/** A directory of a container that is in its memory, and that no snapshot holds. */
export interface MemoryDirectory {
  readonly path: string;
  readonly sizeMb: number;
}
