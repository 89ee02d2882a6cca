import { headerOf, namesIn, type PatchPart, patchParts } from '../../grading/patch-parts.ts';

/** A file that a patch has a hand in: is it there at the base commit, and does the patch write it? */
export interface PatchedFile {
  readonly path: string;
  readonly before: boolean;
  readonly written: boolean;
}

/** The files of a patch of git, by all of their names: of one that is moved, the old and the new. */
export function patchedFiles(patch: string): readonly PatchedFile[] {
  return patchParts(Buffer.from(patch))
    .filter(({ text }) => text.startsWith('diff --git '))
    .flatMap(filesOf);
}

function filesOf(part: PatchPart): readonly PatchedFile[] {
  const { path, change } = part;
  if (path !== null) return [{ path: decoded(path), before: change !== 'added', written: change !== 'deleted' }];
  const header = headerOf(part.text);
  const named = (...beginnings: readonly string[]): ReadonlySet<string> =>
    new Set(header.filter((line) => beginnings.some((one) => line.startsWith(one))).flatMap(namesIn));
  const before = named('--- ', 'rename from ', 'copy from ');
  const written = named('+++ ', 'rename to ', 'copy to ');
  return [...new Set([...before, ...written])].map((name) => ({
    path: decoded(name),
    before: before.has(name),
    written: written.has(name),
  }));
}

/** Names are bytes in a patch. */
const decoded = (name: string): string => Buffer.from(name, 'latin1').toString('utf8');
