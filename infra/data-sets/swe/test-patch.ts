import { headerOf, namesIn, type PatchPart, patchParts } from '../../grading/patch/patch-parts.ts';

/** A file that a patch changes. */
export interface PatchedFile {
  readonly path: string;
  /** Whether the file exists at the base commit. */
  readonly before: boolean;
  /** Whether the patch writes the file. */
  readonly written: boolean;
}

/** Lists the files of a git patch. A renamed file is listed by its old and by its new name. */
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

/** Decodes a name of a patch, which is read as latin1 to keep its bytes. */
const decoded = (name: string): string => Buffer.from(name, 'latin1').toString('utf8');
