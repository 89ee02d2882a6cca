import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../failure.ts';

export interface ImageUse {
  readonly image: string;
  readonly usedAtMs: number;
}

/** The images that temper itself pulled or built on this host, with their last use: the only ones that it may remove. */
export interface ImageUses {
  /** Records an image before it is pulled or built, so that a process that dies meanwhile leaves no unrecorded image. */
  add(image: string): Promise<void>;
  /** Records a use of the image. Does nothing for an image that temper did not pull or build. */
  use(image: string): Promise<void>;
  forget(image: string): Promise<void>;
  list(): Promise<readonly ImageUse[]>;
}

/** Keeps one file per image, whose modification time is its last use. Processes may share the directory. */
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
    async add(image) {
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

/** Records nothing, for a provider that removes no images. */
export const noUses: ImageUses = {
  add: async () => undefined,
  use: async () => undefined,
  forget: async () => undefined,
  list: async () => [],
};

function orNothing<T>(error: unknown, nothing: T): T {
  if (errorCode(error) === 'ENOENT') return nothing;
  throw error;
}
