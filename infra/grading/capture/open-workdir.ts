import { FileRefused } from '../../sandbox/failure.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { eachInTurns } from '../../sandbox/turns.ts';
import { keptBase } from '../workspace/kept-base.ts';

/** The list of the modes that files of the workspace had before they were opened, out of the agent's reach. */
const closedList = `${keptBase}/closed-modes`;
/** The longest list that is kept. The modes of more files are lost. */
const maxListBytes = 8 * 1024 * 1024;

/**
 * Prints the files and directories of the workspace $1 that not every account can read, a line for each: the mode and the absolute
 * path. A name with a line break is left out, and what is in a directory that denies access even to the agent.
 */
const closedScript = `
cd "$1" 2>/dev/null || exit 0
find "$(pwd -P)" \\( -type f ! -perm -444 -o -type d ! -perm -555 \\) ! -path '*
*' -exec stat -c '%a %n' {} + 2>/dev/null; true`;
/** Appends the lines on stdin to the list $1, at once or not at all. */
const noteScript = '{ [ ! -e "$1" ] || cat "$1"; cat; } >"$1.new" && mv "$1.new" "$1"';
/** Makes all of the workspace $1 readable. What is readable keeps its mode. */
const openScript = 'chmod a+rx "$1"; chmod -R a+rX "$1" 2>/dev/null; true';

interface Opening {
  readonly workdir: string;
  /** Returns the time that the next command has. */
  readonly timeLeftMs: () => number;
}

/**
 * Makes a workspace readable that the agent has closed to the grader, and notes which modes its files had. The files stay open, since
 * tests run as the grader, too.
 */
export async function openWorkdir(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, timeLeftMs }: Opening,
  signal: AbortSignal,
): Promise<void> {
  const run = (account: 'agent' | 'grader', script: string, arg: string, stdin?: Buffer) =>
    sandbox.exec(
      {
        account,
        cwd: '/',
        env: {},
        argv: ['sh', '-c', script, 'sh', arg],
        timeoutMs: timeLeftMs(),
        maxOutputBytes: maxListBytes,
        stdin,
      },
      signal,
    );
  const { stdout, truncated } = await run('agent', closedScript, workdir);
  // Where the list cannot be kept, for example on a full disk, the files have their open modes in a snapshot.
  if (stdout.length > 0 && !truncated) await run('grader', noteScript, closedList, stdout);
  await run('agent', openScript, workdir);
}

/**
 * Reads the modes, by absolute path, that files of a workspace had before a capture opened them. Where a file was opened several
 * times, the last mode counts.
 */
export async function readClosedModes(
  sandbox: Pick<Sandbox, 'readFile'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  let list: Buffer;
  try {
    list = await sandbox.readFile(closedList, maxListBytes, signal);
  } catch (error) {
    // Most agents close no file, and one that closes very many gets them back open.
    if (error instanceof FileRefused) return new Map();
    throw error;
  }
  const modes = new Map<string, number>();
  await eachInTurns(list.toString('utf8').matchAll(/^([0-7]{1,4}) (\/.*)$/gm), ([, mode = '', path = '']) =>
    modes.set(path, Number.parseInt(mode, 8)),
  );
  return modes;
}

/** Returns the mode that a file gets when its workspace is opened. */
export const openedMode = (mode: number, type: 'file' | 'directory'): number =>
  mode | (type === 'directory' || (mode & 0o111) !== 0 ? 0o555 : 0o444);
