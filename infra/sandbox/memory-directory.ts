/** A directory of a container that is in its memory, and that no snapshot holds. */
export interface MemoryDirectory {
  readonly path: string;
  readonly sizeMb: number;
}
