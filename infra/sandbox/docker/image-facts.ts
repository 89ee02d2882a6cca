import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { SandboxFailure } from '../failure.ts';
import { unpackTree } from '../files.ts';
import type { ImageFacts } from '../shell/skeleton.ts';
import { callDaemon, orIfMissing } from './daemon.ts';

const accountFileLimits = { maxFiles: 1, maxBytes: 2 ** 20 };

export interface ImageReader {
  /** Reads the facts of an image from a container made from it, which has not started yet. */
  get(container: Docker.Container, made: MadeFrom): Promise<ImageFacts>;
}

interface MadeFrom {
  /** The id of the image. */
  readonly image: string;
  readonly workdir: string;
  /** The directories in which the image finds programs. */
  readonly path: string;
}

/** Creates a reader that reads each image once: an image never changes under its id. */
export function createImageReader(): ImageReader {
  const known = new Map<string, Promise<ImageFacts>>();
  return {
    get: (container, made) => {
      const key = `${made.image} ${made.workdir}`;
      const facts = known.get(key) ?? readImage(container, made);
      known.set(key, facts);
      facts.catch(() => known.delete(key));
      return facts;
    },
  };
}

async function readImage(container: Docker.Container, { workdir, path }: MadeFrom): Promise<ImageFacts> {
  const [passwd, group, hasWorkdir, shell] = await Promise.all([
    readText(container, 'etc/passwd'),
    readText(container, 'etc/group'),
    exists(container, workdir),
    findShell(container, path),
    requireTar(container, path),
  ]);
  return {
    accountFiles: new Map([
      ['etc/passwd', passwd],
      ['etc/group', group],
    ]),
    hasWorkdir,
    shell,
  };
}

/** The place at which temper starts a shell, so that nothing but the image decides which. */
const shellPath = '/bin/sh';

/** Finds the shell of an image that has it elsewhere; null if it is in its usual place. Throws UnsupportedTask. */
async function findShell(container: Docker.Container, path: string): Promise<string | null> {
  if (await exists(container, shellPath)) return null;
  const shell = await findProgram(container, 'sh', path.split(':'));
  if (shell !== null) return shell;
  const text = `expected the image of a sandbox to have sh at ${shellPath} or in its PATH, got none; use an image with a shell, tar and coreutils`;
  throw new SandboxFailure('UnsupportedTask', text);
}

const systemDirectories = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin'] as const;

/** Throws UnsupportedTask for an image without the program that unpacks files. */
async function requireTar(container: Docker.Container, path: string): Promise<void> {
  if ((await findProgram(container, 'tar', [...systemDirectories, ...path.split(':')])) !== null) return;
  const text =
    'expected the image of a sandbox to have tar, which unpacks its files, got none; install tar in the image';
  throw new SandboxFailure('UnsupportedTask', text);
}

async function findProgram(
  container: Docker.Container,
  name: string,
  directories: readonly string[],
): Promise<string | null> {
  for (const directory of directories.filter((one) => one.startsWith('/'))) {
    if (await exists(container, `${directory}/${name}`)) return `${directory}/${name}`;
  }
  return null;
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
