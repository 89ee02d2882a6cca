import { firstOfEach } from '../../../workflows/algorithms/flags.ts';
import type { Flag } from '../../../workflows/contracts/flags.ts';

/** The changes that a capture left out, and that its patch does not show. Strings are latin-1. */
export interface OmittedFiles {
  readonly links: readonly { readonly path: string; readonly target: string | null }[];
  /** Names that git stores in no tree. */
  readonly names: readonly string[];
  /** Files and directories that no account can read. */
  readonly unread: readonly string[];
}

export const tooLargeFlags: readonly Flag[] = [
  { trick: 'bulk', evidence: 'the change is above a limit of size, number of files or time' },
];

/** The flag of work that could not be read, or not all of it. */
export const unreadFlag = (evidence: string): Flag => ({ trick: 'unreadable', evidence });

/** Flags what a capture left out. */
export function flagCapture({ links, names, unread }: OmittedFiles): readonly Flag[] {
  const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8');
  return firstOfEach([
    ...links.map(
      ({ path, target }): Flag => ({
        trick: 'link',
        evidence: utf8(`${path} → ${target ?? '?'}, out of the workspace`),
      }),
    ),
    ...names.map((name): Flag => ({ trick: 'path', evidence: utf8(name) })),
    ...unread.map((name) => unreadFlag(utf8(name))),
  ]);
}
