import { stat } from 'node:fs/promises';

/** Returns whether a file or a directory exists at a path. */
export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
