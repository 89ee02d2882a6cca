declare module 'fs-native-extensions' {
  /**
   * Takes a lock on a range of a file, by default an exclusive one on the whole file (on Linux an open file description lock).
   * False when another process has it.
   */
  export function tryLock(
    fd: number,
    offset?: number,
    length?: number,
    options?: { readonly shared?: boolean },
  ): boolean;
}
