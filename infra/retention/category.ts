import type { Paths } from '../paths.ts';
import type { Objects } from '../store/objects.ts';
import type { Knowledge } from './knowledge.ts';

/** The input of one pass: a stack's directories, what its processes share, the time, and what its Temporal server knows. */
export interface RetentionContext {
  readonly paths: Paths;
  readonly objects: Objects;
  readonly cacheDir: string;
  /** The trainer's checkpoints on this machine. */
  readonly checkpoints: string;
  /** The time of the pass, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** Recorded outcomes, records and what they need are kept if they are at least this new. Null: however old they are. */
  readonly cutoffMs: number | null;
  /** The age that a blob must have to be removed: its reference may not be recorded yet. */
  readonly graceMs: number;
  readonly knowledge: Knowledge;
  readonly signal: AbortSignal;
  /** Receives a sentence about what is kept although nothing is known to need it. */
  note(text: string): void;
}

/** Something that a category keeps or removes as a whole. */
export interface Entry {
  readonly name: string;
  /** The file or directory; for shared objects, where they are. */
  readonly path: string;
  /** The keys of the entry, if it is shared objects. */
  readonly keys?: readonly string[];
  readonly bytes: number;
  /** The reason why it goes; null if it stays. */
  readonly expired: string | null;
  /** Removes it, unless it is in use by now; returns the bytes that are free now. */
  remove(): Promise<number>;
}

/** A kind of files that would grow for ever. */
export interface Category {
  readonly name: string;
  /** The entries that are kept, and why, for the documentation: Markdown without a final full stop. */
  readonly keeps: string;
  /** The folder of the shared objects of the category. */
  readonly folder?: string;
  /** The directories and files of the category on this host. */
  where(context: Pick<RetentionContext, 'paths' | 'cacheDir' | 'checkpoints'>): readonly string[];
  /** Lists the entries. Throws if it cannot be known which of them are needed; then nothing of the category is removed. */
  entries(context: RetentionContext): AsyncIterable<Entry>;
  /** Whether the files of the kept entries refer to blobs. */
  readonly refersToBlobs?: true;
}

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** The age from which on an unused blob may go: longer than any time between storing a blob and recording its reference. */
export const blobGraceMs = dayMs;
