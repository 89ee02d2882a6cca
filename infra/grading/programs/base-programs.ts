import { Readable } from 'node:stream';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { collect } from '../../sandbox/files.ts';
import { byImage } from '../../sandbox/image-environment.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { type TarEntry, tarEntries } from '../../sandbox/tar-entries.ts';
import type { GradedTask } from '../task.ts';
import { requireSuccess } from '../workspace/require-success.ts';
import { baseScript, beyondMark, directoryMark, trackedMark } from './scripts.ts';

/*
 * The programs that the tests find by their PATH in directories that the agent can write, in a sandbox that no agent has worked in.
 * Paths are latin-1.
 */

export const limits = { timeoutMs: 120_000, maxOutputBytes: 256 * 2 ** 20 } as const;
const systemPath = '/usr/sbin:/usr/bin:/sbin:/bin';

/** A directory of the PATH. */
export interface ProgramDirectory {
  /** The absolute path as the PATH names it. */
  readonly path: string;
  /** The path without links; null if it does not exist. */
  readonly real: string | null;
  readonly isOwn: boolean;
  /** Whether packages are installed into it: it belongs to a virtual environment, or is `node_modules/.bin`. */
  readonly isPackage: boolean;
  /** The names of the programs in it. */
  readonly names: readonly string[];
}

/** A program or file, as far as it can be compared and written again. */
export interface KeptFile {
  readonly mode: number;
  /** The target of a link; null for a file. */
  readonly target: string | null;
  readonly bytes: Buffer;
}

export interface BasePrograms {
  /** The directories of the PATH, in its order. */
  readonly directories: readonly ProgramDirectory[];
  /** Paths of files elsewhere that programs in the agent's directories need. */
  readonly beyond: readonly string[];
  /** The names that count as tracked, relative to the workdir; null if every name does. */
  readonly tracked: ReadonlySet<string> | null;
  /** Whether the task has a repository of its own. */
  readonly hasRepository: boolean;
  /** The workdir without links. */
  readonly workdir: string;
  /** Programs of the agent's directories and files elsewhere, by their paths without links. */
  readonly files: ReadonlyMap<string, KeptFile>;
}

/** Reads these programs. Returns the output that `parseBase` takes; it is empty if the PATH leads to no directory of the agent's. */
export async function readBase(
  sandbox: Pick<Sandbox, 'exec'>,
  { task, workdir, path }: { readonly task: GradedTask; readonly workdir: string; readonly path: string | null },
  signal: AbortSignal,
): Promise<Buffer> {
  const given = path ?? task.testEnv.PATH ?? task.env.PATH ?? '';
  const command = byImage(['/bin/sh', '-c', baseScript, 'programs', workdir, given]);
  const read = await sandbox.exec({ account: 'agent', cwd: '/', env: {}, ...command, ...limits }, signal);
  requireSuccess(read, 'reading the programs that the PATH leads to');
  requireWhole(read);
  return read.stdout;
}

function requireWhole({ truncated }: ExecResult): void {
  if (!truncated) return;
  const most = `${limits.maxOutputBytes / 2 ** 20} MB`;
  const text = `the programs in those directories of the image's PATH that the agent can write are above ${most} together; take large files out of these directories`;
  throw new TemperFailure('SetupFailed', text);
}

/** Thrown for output that no script of temper's own can have printed. */
export class UnreadablePrograms extends Error {}

/** Parses what `readBase` read; null if the PATH leads to no directory of the agent's. */
export async function parseBase(output: Buffer): Promise<BasePrograms | null> {
  if (output.byteLength === 0) return null;
  const { words, tar } = split(output);
  const at = words.indexOf(trackedMark);
  if (at < 0) throw new UnreadablePrograms('expected the list of tracked files, got none');
  const [origin = '', workdir = '', ...tracked] = words.slice(at + 1);
  const listed = words.slice(0, at);
  const beyond = listed.filter((_, index) => listed[index - 1] === beyondMark);
  return {
    directories: directoriesIn(listed),
    beyond,
    tracked: origin === 'none' ? null : new Set(tracked),
    hasRepository: origin === 'task',
    workdir,
    files: await filesIn(tar),
  };
}

/** Separates the words before the empty one from the tar behind it. */
export function split(output: Buffer): { readonly words: readonly string[]; readonly tar: Buffer } {
  const end = output[0] === 0 ? 0 : output.indexOf('\0\0') + 1;
  if (end === 0 && output[0] !== 0) throw new UnreadablePrograms('expected a list that ends with an empty word');
  const words = end === 0 ? [] : output.toString('latin1', 0, end - 1).split('\0');
  return { words, tar: output.subarray(end + 1) };
}

/** Returns the directories that a list of words describes. */
export function directoriesIn(words: readonly string[]): readonly ProgramDirectory[] {
  const found: (ProgramDirectory & { readonly names: string[] })[] = [];
  for (let at = 0; at < words.length; at += 1) {
    if (words[at] === directoryMark) {
      const [path = '', real = '', whose = '', what = ''] = words.slice(at + 1, at + 5);
      const isPackage = what === 'package';
      found.push({ path, real: real === '-' ? null : real, isOwn: whose === 'own', isPackage, names: [] });
      at += 4;
    } else if (words[at] === beyondMark) at += 1;
    else found.at(-1)?.names.push((words[at] ?? '').replace(/^.*\//, ''));
  }
  return found;
}

/** Returns the files and links of a tar by their absolute paths. Another name of a file becomes a file of its own. */
export async function filesIn(tar: Buffer): Promise<ReadonlyMap<string, KeptFile>> {
  const files = new Map<string, KeptFile>();
  if (tar.byteLength === 0) return files;
  for (const { header, bytes } of await entriesOf(tar)) {
    const { name, type, mode = 0, linkname = '' } = header;
    const path = latin1(`/${name.replace(/^[./]*\//, '')}`);
    const common = { mode: mode & 0o777, bytes };
    if (type === 'file') files.set(path, { ...common, target: null });
    if (type === 'symlink') files.set(path, { ...common, target: latin1(linkname) });
    if (type === 'link') {
      const same = files.get(latin1(`/${linkname}`));
      if (same !== undefined) files.set(path, same);
    }
  }
  return files;
}

async function entriesOf(tar: Buffer) {
  const entries: { readonly header: TarEntry['header']; readonly bytes: Buffer }[] = [];
  try {
    for await (const { header, content } of tarEntries(Readable.from([tar]))) {
      entries.push({ header, bytes: await collect(Readable.from(content)) });
    }
  } catch (cause) {
    throw new UnreadablePrograms('expected a tar of programs, got something else', { cause });
  }
  return entries;
}

/** The names of a tar are read as UTF-8. */
const latin1 = (text: string): string => Buffer.from(text).toString('latin1');

/** Returns the PATH for scripts in a sandbox that an agent has worked in: without its directories. */
export const pathWithoutOwn = ({ directories }: BasePrograms): string =>
  [systemPath, ...directories.flatMap(({ isOwn, real }) => (isOwn || real === null ? [] : [real]))].join(':');

/** Whether the workspace's commit has a file. */
export function isTrackedFile({ tracked, workdir }: BasePrograms, path: string): boolean {
  return path.startsWith(`${workdir}/`) && (tracked?.has(path.slice(workdir.length + 1)) ?? true);
}
