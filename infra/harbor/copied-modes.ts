import { posix } from 'node:path';
import type { FileEntry, FileTree } from '../sandbox/file-tree.ts';
import type { Instruction } from './dockerfile-instructions.ts';
import { blocksOf, flagsOf, type PlainDockerfile } from './plain-dockerfile.ts';

/*
 * Modes of copied files (`COPY --chmod`) for a builder without this option: the files get their mode in the context. A copy of the
 * whole context then copies a directory that lacks what was added to it. Of a mode such as 4755 the builder drops the first digit,
 * to which no sandbox gives an effect.
 */

/** The directory of the context with the files that a rewritten instruction copies. */
const directory = '.temper-modes';
const option = /--chmod=(\S+)\s+/;

/** A Dockerfile without that option, and the files that its context needs for that. */
interface CopiedModes {
  readonly source: string;
  readonly files: FileTree;
}

/** Makes the failure for a line that cannot be written without the option. */
type Reject = (expected: string, line: string) => Error;

/**
 * Rewrites a Dockerfile without here-documents. Its context is what it may copy, apart from the files of those. One that needs
 * neither them nor such an option is returned as it is.
 */
export function withCopiedModes(
  { source, files: documents }: Pick<PlainDockerfile, 'source' | 'files'>,
  context: FileTree,
  reject: Reject,
): CopiedModes {
  const files = new Map<string, FileEntry>();
  if (!option.test(source) && documents.size === 0) return { source, files };
  let number = 0;
  const written = blocksOf(source).flatMap(({ instruction, own }) => {
    if (instruction === null || !['COPY', 'ADD'].includes(instruction.keyword)) return own;
    const { flags, rest } = flagsOf(instruction.rest);
    const mode = modeOf(instruction, flags, reject);
    const words = wordsOf(rest);
    const copied = words.slice(0, -1);
    const hasVariables = copied.some((word) => word.includes('$'));
    if (mode === null && (hasVariables || /--from=/.test(flags) || !copied.some(takesAdded))) return own;
    if (hasVariables) throw reject('files without variables in their paths beside --chmod', instruction.line);
    const at = `${directory}/${number++}-${mode ?? 'own'}`;
    const sources = copied.map((word) => {
      const document = documents.get(word);
      const found = document === undefined ? matching(context, word) : [[word, document] as const];
      for (const [path, entry] of found) {
        files.set(`${at}/${path}`, { ...entry, mode: mode === null ? entry.mode : Number.parseInt(mode, 8) });
      }
      return posix.join(at, word);
    });
    return [`${instruction.keyword} ${flags.replace(option, '')}${JSON.stringify([...sources, words.at(-1)])}`];
  });
  return { source: written.join('\n'), files };
}

/** Returns the digits of the option; null without it. */
function modeOf({ line }: Instruction, flags: string, reject: Reject): string | null {
  const [, mode = null] = option.exec(flags) ?? [];
  if (mode === null) return null;
  if (!/^[0-7]{3,4}$/.test(mode)) throw reject('a mode of octal digits in --chmod', line);
  if (/--from=/.test(flags)) throw reject('no --chmod of files from another stage (use RUN chmod there)', line);
  return mode;
}

/** Whether a path of a COPY may stand for what is added to the context: the whole context, or a pattern at its root. */
const takesAdded = (word: string): boolean => /^(?:$|\.?[*?[\\])/.test(posix.join('/', word).slice(1));

/** The files that a path of a COPY may stand for: itself, what is below it, and what begins as it does up to its first pattern. */
function matching(context: FileTree, word: string): readonly (readonly [string, FileEntry])[] {
  const path = posix.join('/', word).slice(1).replace(/\/$/, '');
  const start = path.split(/[*?[\\]/, 1)[0] ?? '';
  const isPattern = start !== path;
  return [...context].filter(
    ([one]) => start === '' || one === start || one.startsWith(isPattern ? start : `${start}/`),
  );
}

function wordsOf(rest: string): readonly string[] {
  if (!rest.startsWith('[')) return rest.split(/\s+/);
  return [...rest.matchAll(/"([^"]*)"/g)].map(([, word = '']) => word);
}
