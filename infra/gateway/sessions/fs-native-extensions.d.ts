declare module 'fs-native-extensions' {
  /** Takes an exclusive lock on the whole file (Linux: an open file description's). False: somebody has it. */
  export function tryLock(fd: number): boolean;
}
