import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { unpackTree } from '../files.ts';
import type { ImageFacts } from '../shell/skeleton.ts';
import { callDaemon, orIfMissing } from './daemon.ts';

const accountFileLimits = { maxFiles: 1, maxBytes: 2 ** 20 };

export interface ImageReader {
  /** Reads the facts of the image with this id from a container made from it. */
  get(container: Docker.Container, image: string, workdir: string): Promise<ImageFacts>;
}

/** Creates a reader that reads each image once: an image never changes under its id. */
export function createImageReader(): ImageReader {
  const known = new Map<string, Promise<ImageFacts>>();
  return {
    get: (container, image, workdir) => {
      const key = `${image} ${workdir}`;
      const facts = known.get(key) ?? readImage(container, workdir);
      known.set(key, facts);
      facts.catch(() => known.delete(key));
      return facts;
    },
  };
}

async function readImage(container: Docker.Container, workdir: string): Promise<ImageFacts> {
  const [passwd, group, hasWorkdir] = await Promise.all([
    readText(container, 'etc/passwd'),
    readText(container, 'etc/group'),
    exists(container, workdir),
  ]);
  return {
    accountFiles: new Map([
      ['etc/passwd', passwd],
      ['etc/group', group],
    ]),
    hasWorkdir,
  };
}

export async function exists(container: Docker.Container, path: string): Promise<boolean> {
  const found: Readable | undefined = await callDaemon(() => container.infoArchive({ path })).catch(orIfMissing);
  found?.destroy();
  return found !== undefined;
}

async function readText(container: Docker.Container, path: string): Promise<string> {
  const archive = await callDaemon(() => container.getArchive({ path: `/${path}` })).catch(orIfMissing);
  if (!archive) return '';
  const tree = await unpackTree(archive as Readable, accountFileLimits);
  const text = [...tree.values()].map(({ bytes }) => Buffer.from(bytes).toString('utf8')).join('');
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}
