/*
 * The changes of a sandbox against its image, and their way into another sandbox of the same image.
 */

/** The owner of a carried file: the agent, whose uid differs in each sandbox, or a uid of the image. */
export type CarriedOwner = 'agent' | number;

export interface CarriedHeader {
  /** Absolute path. */
  readonly path: string;
  readonly type: 'file' | 'directory' | 'symlink' | 'link' | 'fifo';
  readonly mode: number;
  readonly uid: CarriedOwner;
  readonly gid: CarriedOwner;
  readonly mtime: Date;
  /** The target: of a symlink as it is written, of a hard link an absolute path. */
  readonly target?: string;
  readonly size: number;
  /** Set on the way into a sandbox if the grader gets the agent's file. */
  readonly toGrader?: true;
}

export interface CarriedEntry {
  readonly header: CarriedHeader;
  /** The bytes of a file; none for other types. It has to be read, or destroyed, before the next entry comes. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** The names in a directory of the image; whatever else the image has there was deleted. */
export interface Listing {
  readonly directory: string;
  readonly names: readonly string[];
}

/** The names that changes consist of, beside the files themselves. */
export interface Contents {
  /** Directories whose content was changed, as far as they are from the image. */
  readonly listings: readonly Listing[];
  /** Paths that the image does not have; the entries hold all that is in them. */
  readonly added: readonly string[];
}

export interface ReadChanges extends Contents {
  /** Set if the changes exceed `carriedLimits`; nothing is listed then. */
  readonly tooMany?: boolean;
  /** Yields everything that was added or changed. Directories come before what is in them. */
  entries(): AsyncIterable<CarriedEntry>;
}

/** Changes on their way into a sandbox. */
export interface WrittenChanges extends Contents {
  readonly entries: AsyncIterable<CarriedEntry>;
}

export interface CarriedLimits {
  /** The most files, links and directories that are carried, and the most names of what was added and of what changed directories hold. */
  readonly files: number;
  /** The most characters of those names. */
  readonly characters: number;
}

/** The limits of what is read of a sandbox: an agent makes millions of files in a minute. */
export const carriedLimits: CarriedLimits = { files: 500_000, characters: 32 * 2 ** 20 };

/** Stands for changes above the limits, of which nothing is carried. */
export const tooManyChanges: ReadChanges = {
  listings: [],
  added: [],
  tooMany: true,
  async *entries() {
    // Nothing is carried of too much.
  },
};

export interface SandboxChanges {
  /** Notes what the sandbox holds before its agent starts, where its image does not tell that. Repeatable. */
  note(signal: AbortSignal): Promise<void>;
  /** Reads the changes, except those below the paths in `leftOut` and those that temper itself makes in every sandbox. */
  read(leftOut: readonly string[], signal: AbortSignal): Promise<ReadChanges>;
  /**
   * Writes changes of another sandbox of the same image into this one. Returns why that is impossible, or null.
   */
  write(changes: WrittenChanges, signal: AbortSignal): Promise<string | null>;
  /** Returns the programs and libraries of the image that were replaced or removed, without help of what is in the sandbox. */
  changedPrograms(): Promise<readonly string[]>;
}

/** Paths that temper itself fills in every sandbox. They are never carried, and never removed. */
export const ownPaths: readonly string[] = [
  '/tests',
  '/logs/verifier',
  '/solution',
  '/as-agent',
  '/gw',
  '/.temper',
  '/.adopted',
  '/root/base.git',
  '/root/base.rules',
  '/root/base.programs',
  '/tmp/temper-restore',
  '/dev',
  '/proc',
  '/sys',
  '/.dockerenv',
  '/sbin/docker-init',
  '/usr/sbin/docker-init',
  '/etc/hostname',
  '/etc/hosts',
  '/etc/resolv.conf',
  '/etc/mtab',
];

/** A list of libraries that every program loads first, if the file is there. */
export const preloadList = '/etc/ld.so.preload';
const programPlaces = /^\/(?:usr$|(?:usr\/(?:local\/)?)?(?:bin|sbin|lib\w*)(?:\/|$))/;

/** Whether an image has its programs and libraries at a path, or such a directory is there. */
export const isProgramPlace = (path: string): boolean => programPlaces.test(path);

export const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);

/** Whether a path is one of these, or below one. */
export const isWithinAny = (path: string, directories: readonly string[]): boolean =>
  directories.some((directory) => isWithin(path, directory));

/** Whether a path is a directory above one of these. */
export const isAboveAny = (path: string, below: readonly string[]): boolean =>
  below.some((one) => one !== path && isWithin(one, path));
