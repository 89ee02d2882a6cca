declare module 'fs-native-extensions' {
  /** Takes an exclusive lock on the whole file (on Linux an open file description lock). False when another process has it. */
  export function tryLock(fd: number): boolean;
}
