import { posix } from 'node:path';
import { type AddedFiles, imageWith, layersOf } from '../../../harbor/added-files.ts';
import { instructions } from '../../../harbor/dockerfile-instructions.ts';
import { text } from '../../../harbor/harbor-files.ts';
import type { FileTree } from '../../../sandbox/files.ts';

/** Files that say how a task is judged. They are in an image only if the Dockerfile itself names them. */
const judging = /^(?:tests\/|task\.yaml$|run-tests\.sh$|docker-compose\.ya?ml$)/;
/** The solution, which no image may hold. */
const solution = /^solution\.(?:sh|yaml)$/;
/** Whether a file says how a task is judged or solved. */
export const isHidden = (path: string): boolean => judging.test(path) || solution.test(path);

const dockerfileName = 'Dockerfile';

/** The parts of a task that its image is made from. */
export interface ImageParts {
  /** The name of the image, or null when the Dockerfile makes it. */
  readonly image: string | null;
  /** The directory of the task that is its context; empty for the task's folder. */
  readonly context: string;
  /** The text of the Dockerfile; null for an image by name. */
  readonly source: string | null;
  readonly added: AddedFiles;
}

/**
 * Returns the name of the image, or the files to build it from. What the task's folder mounts is copied in, over what the image
 * has at its place, without tests and solution. An image by name that has such files is built on.
 */
export function imageOf(tree: FileTree, { image, context, source, added }: ImageParts): string | FileTree {
  return imageWith(image ?? buildContext(tree, { context, source }), layersOf(tree, added, isHidden));
}

/** The files that the Dockerfile may copy: its context without tests and solution, unless it names those. */
function buildContext(tree: FileTree, { context, source }: Pick<ImageParts, 'context' | 'source'>): FileTree {
  const start = context === '' ? '' : `${context}/`;
  const inContext = [...tree].filter(([path]) => path.startsWith(start));
  const given = new Map(
    inContext.flatMap(([path, file]) => (isHidden(path) ? [] : [[path.slice(start.length), file] as const])),
  );
  if (source === null) return given;
  given.set(dockerfileName, text(source));
  const named = copiedBy(source);
  for (const [whole, file] of inContext) {
    const path = whole.slice(start.length);
    if (!isHidden(whole) || !named.some((one) => covers(one, path))) continue;
    // An empty solution lets the Dockerfile's commands succeed, and tells nothing.
    given.set(path, solution.test(whole) ? { ...file, bytes: new Uint8Array() } : file);
  }
  return given;
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
