/** Which images temper itself brought to this host, and when each was used last: the only ones that it may remove. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../failure.ts';

export interface ImageUse {
  readonly image: string;
  readonly usedAtMs: number;
}

export interface ImageUses {
  /** Before it is brought: a process that dies meanwhile leaves nothing that nobody knows of. */
  bring(image: string): Promise<void>;
  /** Nothing, for an image that was there before. */
  use(image: string): Promise<void>;
  forget(image: string): Promise<void>;
  list(): Promise<readonly ImageUse[]>;
}

/** A file for each, whose time is that of its last use: processes may share the directory. */
export function createImageUses(directory: string): ImageUses {
  const fileOf = (image: string): string => join(directory, createHash('sha256').update(image).digest('hex'));
  const useOf = async (name: string): Promise<readonly ImageUse[]> => {
    try {
      const file = join(directory, name);
      const [image, { mtimeMs }] = await Promise.all([readFile(file, 'utf8'), stat(file)]);
      return [{ image, usedAtMs: mtimeMs }];
    } catch (error) {
      return orNothing(error, []);
    }
  };
  return {
    async bring(image) {
      await mkdir(directory, { recursive: true });
      await writeFile(fileOf(image), image);
    },
    async use(image) {
      const now = new Date();
      await utimes(fileOf(image), now, now).catch((error: unknown) => orNothing(error, undefined));
    },
    forget: (image) => rm(fileOf(image), { force: true }),
    async list() {
      const names = await readdir(directory).catch((error: unknown) => orNothing<string[]>(error, []));
      return (await Promise.all(names.map(useOf))).flat();
    },
  };
}

/** For a provider that removes no images. */
export const noUses: ImageUses = {
  bring: async () => undefined,
  use: async () => undefined,
  forget: async () => undefined,
  list: async () => [],
};

function orNothing<T>(error: unknown, nothing: T): T {
  if (errorCode(error) === 'ENOENT') return nothing;
  throw error;
}
