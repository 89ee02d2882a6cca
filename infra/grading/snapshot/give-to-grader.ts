import { dirname } from 'node:path/posix';
import { type CarriedHeader, isWithin, type WrittenChanges } from '../../sandbox/changes.ts';
import { openedMode } from '../capture/open-workdir.ts';
import { directoriesAbove } from '../patch/patch-parts.ts';

/** The most files and directories that the grader gets. More than these are no keys and settings. */
const mostGiven = 10_000;
/** The mode bits that a given file keeps: the grader gets no file that runs with its rights. */
const givenBits = 0o1777;

export interface GivenWorkdir {
  /** The workdir, by its path without links. */
  readonly workdir: string;
  /** The absolute paths of protected files, which the agent's account puts back. */
  readonly protectedPaths: readonly string[];
  /** Directories that the agent's account looks through again. Default: none. */
  readonly open?: readonly string[];
}

/**
 * Gives the grader what the agent has closed to all accounts but its own, with its mode, so that tests can read a key of mode 600
 * and see that mode. They have no capabilities, although they are root. A directory that protected files are put into stays the
 * agent's, and is opened. So is what lies in the workdir beyond the number of given files, since tests could not enter it.
 */
export function givenToGrader(changes: WrittenChanges, given: GivenWorkdir): WrittenChanges {
  const opens = new Set(given.open?.flatMap((path) => [path, ...directoriesAbove(path)]));
  const keeps = directoriesToKeep(changes, given);
  /** The modes of the grader's files by path, which other names of the same file share. */
  const modes = new Map<string, number>();
  const taken = (header: CarriedHeader): CarriedHeader => {
    const { path, type, mode, target = '' } = header;
    const shared = type === 'link' ? modes.get(target) : undefined;
    if (shared !== undefined) return { ...header, mode: shared, toGrader: true };
    const isKept = type === 'directory' && (keeps(path) || opens.has(path));
    if (!isClosed(header)) return header;
    if (isOpenToOwner(header) && !isKept && modes.size < mostGiven) {
      modes.set(path, mode & givenBits);
      return { ...header, mode: mode & givenBits, toGrader: true };
    }
    return isWithin(path, given.workdir) || opens.has(path) ? opened(header) : header;
  };
  async function* entries(): WrittenChanges['entries'] {
    for await (const { header, content } of changes.entries) yield { header: taken(header), content };
  }
  return { ...changes, entries: entries() };
}

/**
 * Returns a function that says whether a directory stays the agent's: one of the image outside the workdir, the workdir, and those at,
 * above or below the places of protected files. It has to be called for each directory, and before those in it.
 */
function directoriesToKeep(
  { listings }: Pick<WrittenChanges, 'listings'>,
  { workdir, protectedPaths }: GivenWorkdir,
): (path: string) => boolean {
  const ofImage = new Set(listings.map(({ directory }) => directory));
  const above = new Set(protectedPaths.flatMap((path) => directoriesAbove(path)));
  const below = new Set(protectedPaths);
  return (path) => {
    if (!isWithin(path, workdir)) return ofImage.has(path);
    // An agent makes any number of directories, as deep as it likes, so that only the last step is looked at.
    if (below.has(dirname(path))) below.add(path);
    return path === workdir || above.has(path) || below.has(path);
  };
}

/** The rights of a class of accounts that a file or directory needs to be read, as in the last digit of a mode. */
const neededRights = ({ type }: CarriedHeader): number => (type === 'directory' ? 0o5 : 0o4);

/** Whether a file or directory of the agent denies access to other accounts. */
const isClosed = (header: CarriedHeader): boolean =>
  header.uid === 'agent' &&
  (header.type === 'file' || header.type === 'directory') &&
  (header.mode & neededRights(header)) !== neededRights(header);

const isOpenToOwner = (header: CarriedHeader): boolean =>
  ((header.mode >> 6) & neededRights(header)) === neededRights(header);

function opened(header: CarriedHeader): CarriedHeader {
  const { type, mode } = header;
  return type === 'file' || type === 'directory' ? { ...header, mode: openedMode(mode, type) } : header;
}
