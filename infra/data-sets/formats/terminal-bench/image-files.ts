import { posix } from 'node:path';
import type { Mount } from '../../../compose/mounts.ts';
import { instructions } from '../../../harbor/dockerfile.ts';
import { text } from '../../../harbor/harbor-files.ts';
import type { FileEntry, FileTree } from '../../../sandbox/files.ts';

/** Files that say how a task is judged. They are in an image only if the Dockerfile itself names them. */
const judging = /^(?:tests\/|task\.yaml$|run-tests\.sh$|docker-compose\.ya?ml$)/;
/** The solution, which no image may hold. */
const solution = /^solution\.(?:sh|yaml)$/;
/** Whether a file says how a task is judged or solved. */
export const isHidden = (path: string): boolean => judging.test(path) || solution.test(path);

const dockerfileName = 'Dockerfile';
const mountedDirectory = '.temper-mounted';
const ignoreFile = '.dockerignore';

/** The parts of a task that its image is made from. */
export interface ImageParts {
  /** The name of the image, or null when the Dockerfile makes it. */
  readonly image: string | null;
  /** The path of the Dockerfile in the task's folder. */
  readonly dockerfile: string;
  readonly mounts: readonly Mount[];
}

/**
 * Returns the name of the image, or the files to build it from. What the task's folder mounts is copied in, over what the image
 * has at its place, without tests and solution. An image by name that has such files is built on.
 */
export function imageOf(tree: FileTree, { image, dockerfile, mounts }: ImageParts): string | FileTree {
  const layers = mounts.flatMap((mount, number) => layerOf(tree, mount, `${mountedDirectory}/${number}`));
  const added = layers.map(({ line }) => `${line}\n`).join('');
  const files = layers.flatMap((layer) => layer.files);
  if (image !== null) {
    return layers.length === 0 ? image : new Map([[dockerfileName, text(`FROM ${image}\n${added}`)], ...files]);
  }
  const context = buildContext(tree, dockerfile);
  if (layers.length === 0) return context;
  const ignored = context.get(ignoreFile);
  return new Map([
    ...context,
    ...files,
    [dockerfileName, text(`${textOf(context.get(dockerfileName)).replace(/[\\\s]*$/, '')}\n${added}`)],
    ...(ignored === undefined ? [] : [[ignoreFile, text(`${textOf(ignored)}\n!${mountedDirectory}\n`)] as const]),
  ]);
}

/** The files that the Dockerfile may copy: the task's folder without tests and solution, unless it names those. */
function buildContext(tree: FileTree, dockerfile: string): Map<string, FileEntry> {
  const context = new Map([...tree].filter(([path]) => !isHidden(path)));
  const entry = tree.get(dockerfile);
  if (entry === undefined) return context;
  context.set(dockerfileName, entry);
  const named = copiedBy(textOf(entry));
  for (const [path, file] of tree) {
    if (!isHidden(path) || !named.some((source) => covers(source, path))) continue;
    // An empty solution lets the Dockerfile's commands succeed, and tells nothing.
    context.set(path, solution.test(path) ? { ...file, bytes: new Uint8Array() } : file);
  }
  return context;
}

/** Returns the sources that a Dockerfile copies from its context. */
function copiedBy(dockerfile: string): readonly string[] {
  return instructions(dockerfile)
    .filter(({ keyword, rest }) => (keyword === 'COPY' || keyword === 'ADD') && !/(?:^|\s)--from=/.test(rest))
    .flatMap(({ rest }) => wordsOf(rest.replaceAll(/(?:^|\s)--\S+/g, ' ').trim()).slice(0, -1))
    .map((source) => posix.normalize(`./${source}`).replace(/\/$/, ''));
}

const wordsOf = (rest: string): readonly string[] =>
  /^\[.*\]$/s.test(rest)
    ? [...rest.matchAll(/"([^"]*)"/g)].map(([, word = '']) => word)
    : rest.split(/\s+/).map((word) => word.replaceAll(/^["']|["']$/g, ''));

/** Whether a source names a path: itself, or a directory above it other than the whole folder. */
function covers(source: string, path: string): boolean {
  const expression = source.replaceAll(/[*?]|[^*?\w/-]/g, (sign) =>
    sign === '*' ? '[^/]*' : sign === '?' ? '[^/]' : `\\${sign}`,
  );
  return /^(?![*?])/.test(source) && source !== '.' && new RegExp(`^${expression}(?:/|$)`).test(path);
}

/**
 * The files that a mount adds to the build context, and the line of a Dockerfile that copies them; none if all are hidden. In the
 * place of a source that does not exist, Docker makes an empty directory.
 */
function layerOf(tree: FileTree, { source, target }: Mount, at: string) {
  const mounted = mountedFiles(tree, source);
  if (mounted.size === 0) return [{ line: `RUN ${JSON.stringify(['mkdir', '-p', target])}`, files: [] }];
  const files = [...mounted].filter(([path]) => !isHidden(path));
  if (files.length === 0) return [];
  const isFile = tree.has(source);
  const line = `COPY ${JSON.stringify([at, isFile ? target : `${target}/`])}`;
  const placed = files.map(
    ([path, entry]) => [isFile ? at : `${at}/${path.slice(source === '' ? 0 : source.length + 1)}`, entry] as const,
  );
  return [{ line, files: placed }];
}

/** Returns the files of a mount by their paths in the task's folder: those below its source, or the file itself. */
export function mountedFiles(tree: FileTree, source: string): FileTree {
  return new Map([...tree].filter(([path]) => source === '' || path === source || path.startsWith(`${source}/`)));
}

const textOf = (entry: FileEntry | undefined): string => new TextDecoder().decode(entry?.bytes);
