import { packTree } from '../../sandbox/files.ts';
import type { ExecRequest, ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { retryLate } from '../late.ts';
import { patchParts } from '../patch/patch-parts.ts';
import { gitPrelude, plainRepository } from '../plain-git.ts';
import { keptBase } from '../workspace/kept-base.ts';
import type { Restored } from './apply-protected.ts';
import { filterPatch } from './filter-patch.ts';
import { makeRoom, pathsForRoom, waitingRoom } from './make-room.ts';
import { matcher } from './patterns.ts';
import { modulePaths, type Protection, protectedPatterns, runnerModules } from './rules.ts';

const timeoutMs = 120_000;
/** Limit of the names of all files of the base commit. */
const maxListBytes = 64 * 2 ** 20;
/** Limit of the contents of files at the base commit: a diff of more is not captured. */
const maxPackBytes = 160 * 2 ** 20;
const maxOutputBytes = 64 * 1024;
const namedPaths = 5;
const pathLength = 120;

const inKeptRepository = `${gitPrelude}export GIT_DIR=${keptBase}\n`;
/** Prints the files of the base commit, each with its mode and the id of its content. */
const listScript = `${inKeptRepository}exec git ls-files -s -z`;
/** Prints a pack of the objects whose ids are on stdin. */
const packScript = `${inKeptRepository}exec git pack-objects -q --window=0 --stdout`;

/**
 * Replaces what is at the paths in `names` by the files of `entries`, in the workspace $1. It can be repeated after an
 * interruption at any point, because it looks at nothing that the workspace holds.
 */
const placeScript = `
${gitPrelude}${plainRepository}${makeRoom}
umask 022
rm -rf ${waitingRoom} && mkdir -p ${waitingRoom} && tar -x -o -f - -C ${waitingRoom} && plain ${waitingRoom}/git || exit
[ -x "$1" ] || chmod u+rwx "$1" 2>/dev/null
cd "$1" && make_room ${waitingRoom}/names || exit
export GIT_DIR=${waitingRoom}/git GIT_WORK_TREE="$1"
if [ -s ${waitingRoom}/pack ]; then
  git index-pack --stdin <${waitingRoom}/pack >/dev/null &&
    git update-index -z --index-info <${waitingRoom}/entries && git checkout-index -f -a || exit
fi
exec rm -rf ${waitingRoom}
`;

export interface PatchToRestore {
  readonly workdir: string;
  readonly patch: Uint8Array;
  readonly protection: Protection;
  /** Whether the workspace is changed. If not, the result only names what was restored. */
  readonly applies: boolean;
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
}

/**
 * Gives protected files that a patch changed the content and mode of the base commit again, in the workspace that the patch was
 * captured from. Runs as the agent, whose files they are, with what the grader keeps of the base commit. Returns a refusal if the
 * agent has made that impossible. Throws EvaluationTimedOut.
 */
export async function restoreProtected(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, patch, protection, applies, attempt }: PatchToRestore,
  signal: AbortSignal,
): Promise<{ readonly refusal: string | null; readonly restored: Restored | null }> {
  const { restored: names } = filterPatch(patch, protectedPatterns(protection), { mergeSections: false });
  if (names.length === 0) return { refusal: null, restored: null };
  const paths = names
    .slice(0, namedPaths)
    .map((name) => Buffer.from(name, 'latin1').toString('utf8').slice(0, pathLength));
  const restored = { count: names.length, paths };
  if (!applies) return { refusal: null, restored };
  const run: Run = async (request) => {
    const done = await sandbox.exec({ cwd: '/', env: {}, timeoutMs, maxOutputBytes, ...request }, signal);
    retryLate(done, attempt, "restoring protected files in the agent's own sandbox");
    if (done.exitCode === 0 && !done.timedOut && !done.truncated) return done;
    throw new Refusal(done.stderr.toString('utf8').trim().slice(-2000));
  };
  try {
    await place(run, { workdir, names, atBase: namesAtBase(patch, names) });
    return { refusal: null, restored };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { refusal: `protected files could not be restored: ${error.message}`, restored: null };
  }
}

/** Thrown when a command of the restoration fails. Its message is for readers of the log. */
class Refusal extends Error {}

type Run = (request: Pick<ExecRequest, 'account' | 'argv'> & Partial<ExecRequest>) => Promise<ExecResult>;

/** Returns those of the names that the base commit has. */
function namesAtBase(patch: Uint8Array, names: readonly string[]): ReadonlySet<string> {
  const wanted = new Set(names);
  const had = patchParts(patch).filter(({ change }) => change !== 'added');
  return new Set(had.flatMap((part) => part.names).filter((name) => wanted.has(name)));
}

interface Places {
  readonly workdir: string;
  readonly names: readonly string[];
  readonly atBase: ReadonlySet<string>;
}

async function place(run: Run, { workdir, names, atBase }: Places): Promise<void> {
  const entries = await entriesOf(run, atBase);
  const ids = Buffer.from([...new Set(entries.map(({ id }) => `${id}\n`))].join(''));
  const packing = { account: 'grader', argv: ['sh', '-c', packScript], maxOutputBytes: maxPackBytes } as const;
  const files = {
    names: pathsForRoom(names),
    entries: Buffer.from(entries.map(({ line }) => `${line}\0`).join(''), 'latin1'),
    pack: entries.length === 0 ? Buffer.alloc(0) : (await run({ ...packing, stdin: ids })).stdout,
  };
  const tree = new Map(Object.entries(files).map(([name, bytes]) => [name, { mode: 0o644, bytes }]));
  const stdin = await packTree(tree, { uid: 0, gid: 0 });
  await run({ account: 'agent', argv: ['sh', '-c', placeScript, 'restore', workdir], stdin });
}

interface BaseEntry {
  readonly id: string;
  /** The line by which git lists it. */
  readonly line: string;
}

/** Returns these files as the base commit has them. */
async function entriesOf(run: Run, names: ReadonlySet<string>): Promise<readonly BaseEntry[]> {
  if (names.size === 0) return [];
  const listed = await run({ account: 'grader', argv: ['sh', '-c', listScript], maxOutputBytes: maxListBytes });
  const entries = listed.stdout
    .toString('latin1')
    .split('\0')
    .filter((line) => names.has(line.slice(line.indexOf('\t') + 1)))
    .map((line) => ({ id: line.split(' ')[1] ?? '', line }));
  if (entries.length === names.size) return entries;
  throw new Refusal(`the kept base commit has ${entries.length} of ${names.size} files that the diff changed`);
}

/**
 * Returns the modules with a runner's name that a repository had before the patch, as far as the patch changes them: there they
 * are code like any other.
 */
export function ownModules(patch: Uint8Array): readonly string[] {
  const had = patchParts(patch)
    .filter(({ change }) => change !== 'added')
    .flatMap(({ names }) => names);
  return runnerModules.filter((name) => had.some(matcher(modulePaths(name))));
}
