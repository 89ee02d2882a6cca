import type { Diff } from '../../../workflows/contracts/diff.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { FileRefused, wasEndedInside } from '../../sandbox/failure.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import { NotYetRead, usingWhatAgentLeft } from '../../sandbox/what-agent-left.ts';
import type { Store } from '../../store/store.ts';
import { flagCapture, tooLargeFlags, unreadFlag } from '../flags/capture.ts';
import { wasCutOff } from '../late.ts';
import { withoutEscapingLinks } from '../patch/patch-links.ts';
import { gitPrelude } from '../plain-git.ts';
import { keptBase, keptTree } from '../workspace/kept-base.ts';
import {
  isUnreadable,
  listFiles,
  listScript,
  type RunScript,
  refusedNames,
  stdinOf,
  unreadable,
  unreadDirectories,
} from './changed-files.ts';
import { openWorkdir } from './open-workdir.ts';

/**
 * Limit of one capture; the stage has time for two. A capture that takes longer twice was made slow by the agent, since the
 * base commit is indexed.
 */
const timeoutMs = 120_000;
/**
 * Limits of the search for files that cannot be read, which takes all files by halves: an agent can leave any number of them. What is
 * not found out by then counts as unread.
 */
const search = { mostTakes: 500, timeoutMs: timeoutMs / 2 } as const;
/** The largest patch that is kept. No larger change can be reviewed, and its evaluation counts as failed. */
const maxPatchBytes = 16 * 1024 * 1024;
/** Limit of the changed files, before and after together. Git holds what it compares in the sandbox's memory. */
const maxContentBytes = 128 * 1024 * 1024;
/** Limit of the names of all files, including ignored ones. */
const maxListBytes = 64 * 1024 * 1024;

/** The exit code if the changed files are above the limit. */
const tooMuch = 78;
/** The exit code if the files have to be listed first. */
const needsListing = 79;

/**
 * The beginning of each script: enters the workspace $1, and defines two functions. `take` reads the files named on stdin
 * into a copy of the base's index, whether they still exist or not. `difference` prints the patch from the base's tree to
 * that index.
 *
 * Only the kept repository is used, so the agent's hooks, filters, attributes and settings have no effect. The copied index
 * keeps its time stamp, by which git recognises files that may have changed in the second in which it read them, and reads
 * them again.
 */
const inKeptRepository = `
${gitPrelude}
[ -r "$1" ] && cd "$1" || exit ${unreadable}
export GIT_DIR=${keptBase} GIT_WORK_TREE="$1"
now=${keptBase}/now
take() { GIT_INDEX_FILE=$now git update-index -z --add --remove --replace --stdin; }
difference() {
  export GIT_INDEX_FILE=$now
  # Which blobs differ? Nothing is printed if none does.
  read -r tree <${keptTree} && git diff-index --cached --raw --no-renames --abbrev=64 "$tree" >${keptBase}/raw || exit
  [ -s ${keptBase}/raw ] || exit 0
  # Add up the sizes of the old and the new blobs; a missing blob (of a new or deleted file) has no size.
  while read -r _ _ old new _; do printf '%s\\n%s\\n' "$old" "$new"; done <${keptBase}/raw |
    git cat-file --batch-check='%(objectsize)' |
    {
      sum=0
      while read -r size rest; do [ -n "$rest" ] || sum=$((sum + size)); done
      [ $sum -le ${maxContentBytes} ]
    } || exit ${tooMuch}
  exec git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames --diff-algorithm=myers --src-prefix=a/ --dst-prefix=b/ "$tree"
}
`;

/**
 * Prints the patch in one command, which suffices for most agents, since they add no file. Prints lists of all files instead
 * if there are new ones, or if git cannot store one of the base's names (now a pipe or a socket).
 */
const firstScript = `
${inKeptRepository}
# An aborted capture may have left its lock.
[ ! -e $now.lock ] || rm $now.lock
cp -p ${keptBase}/index $now || exit
if { git ls-files -o || echo failed; } | read -r _ || ! git ls-files -z >${keptBase}/names || ! take <${keptBase}/names; then
  ${listScript}
  exit ${needsListing}
fi
difference
`;
/** Removes the files named on stdin from the copied index. */
const removeScript = `${inKeptRepository}GIT_INDEX_FILE=$now git update-index -z --force-remove --stdin`;
/** Takes the files named on stdin, and prints the patch. */
const takeScript = `${inKeptRepository}take || exit; difference`;
const takeOnlyScript = `${inKeptRepository}take`;
const differenceScript = `${inKeptRepository}difference`;
/** Prints lists of all files that can be read, after a capture that could not read all. */
const readableScript = `
${inKeptRepository}
[ ! -e $now.lock ] || rm $now.lock
cp -p ${keptBase}/index $now && { ${listScript} } || exit
exit ${needsListing}
`;

export interface DiffOptions {
  readonly workdir: string;
  readonly baseCommit: string;
  /** Whether a capture has failed before. A first failure counts as the host's fault, a second one as the agent's. */
  readonly failedBefore: boolean;
}

/**
 * Captures the changes of the workspace since its base commit. Call it only after every process of the agent has ended. Git
 * runs inside the sandbox, never on the host. Whatever the agent left, the second failure of its capture is a diff, too.
 */
export async function captureDiff(
  sandbox: Pick<Sandbox, 'name' | 'exec' | 'changes' | 'diskUsage'>,
  store: Store,
  options: DiffOptions,
  signal: AbortSignal,
): Promise<Diff> {
  const { baseCommit, failedBefore } = options;
  try {
    return await usingWhatAgentLeft({ sandbox, failedBefore }, () => capture(sandbox, store, options, signal), signal);
  } catch (error) {
    if (!wasEndedInside(error)) throw error;
    return { ...(await emptyDiff(store, baseCommit)), unread: true, flags: [unreadFlag(error.message)] };
  }
}

async function capture(
  sandbox: Pick<Sandbox, 'exec'>,
  store: Store,
  { workdir, baseCommit, failedBefore }: DiffOptions,
  signal: AbortSignal,
): Promise<Diff> {
  const deadlineMs = performance.now() + timeoutMs;
  const timeLeftMs = (): number => Math.max(1_000, deadlineMs - performance.now());
  const run: RunScript = (script, args, stdin) =>
    sandbox.exec(
      {
        account: 'grader',
        cwd: '/',
        env: {},
        argv: ['sh', '-c', script, 'sh', ...args],
        timeoutMs: timeLeftMs(),
        maxOutputBytes: maxListBytes,
        stdin,
      },
      signal,
    );
  let taken = await compare(run, workdir);
  let unread: readonly string[] = [];
  if (taken === 'unreadable') {
    await openWorkdir(sandbox, { workdir, timeLeftMs }, signal);
    taken = await compare(run, workdir);
  }
  if (taken === 'unreadable') ({ taken, unread } = await compareReadable(run, workdir, searchUntil(deadlineMs)));
  if (taken === 'unreadable') throw new FileRefused('outside', workdir, `${workdir} cannot be read`);
  if (taken !== 'too-many' && wasCutOff(taken) && !failedBefore) {
    throw new NotYetRead(`the diff was not captured within ${timeoutMs / 1000} s; temper will capture it once more`);
  }
  if (taken === 'too-many' || wasCutOff(taken) || isTooMuch(taken)) {
    return { patch: await putPatch(store, ''), baseCommit, files: 0, dropped: 0, tooLarge: true, flags: tooLargeFlags };
  }
  if (taken.exitCode !== 0) throw gitFailure(taken, baseCommit);
  const { patch, files, dropped } = withoutEscapingLinks(taken.stdout);
  const names = refusedNames(taken);
  const flags = flagCapture({ links: dropped, names, unread });
  return {
    patch: await putPatch(store, patch),
    baseCommit,
    files,
    dropped: dropped.length + names.length + unread.length,
    tooLarge: false,
    ...(unread.some(isReachable) && { unread: true }),
    ...(flags.length > 0 && { flags }),
  };
}

function gitFailure({ exitCode, stderr }: ExecResult, baseCommit: string): TemperFailure {
  const output = stderr.toString('utf8').trim().slice(-300);
  return new TemperFailure(
    output.includes('No space left on device') ? 'DiskFull' : 'SandboxLost',
    `the diff against ${baseCommit} could not be captured: git ended with exit code ${exitCode}: ${output}`,
  );
}

/** The length of names from which on no program reaches what is there by its path. Git cuts them when it prints them. */
const beyondReach = 2_000;
const isReachable = (name: string): boolean => name.length < beyondReach;

/**
 * Compares the workspace with the base. Returns the result of the last script, whose stdout is the patch, or that of
 * the script that failed.
 */
async function compare(run: RunScript, workdir: string): Promise<ExecResult | 'unreadable' | 'too-many'> {
  const first = await run(firstScript, [workdir]);
  if (isUnreadable(first)) return 'unreadable';
  if (first.exitCode !== needsListing || first.truncated || first.timedOut) return first;
  const files = await listFiles(run, workdir, first.stdout);
  if (typeof files === 'string' || !('present' in files)) return files;
  if (files.removed.length > 0) {
    const removed = await run(removeScript, [workdir], await stdinOf(files.removed));
    if (removed.exitCode !== 0 || removed.timedOut) return removed;
  }
  const result = await run(takeScript, [workdir], await stdinOf(files.present));
  return isUnreadable(result) ? 'unreadable' : result;
}

interface Compared {
  readonly taken: ExecResult | 'unreadable' | 'too-many';
  /** The files that no account can read, which are as the base has them. */
  readonly unread: readonly string[];
}

/** Returns a function that says whether the search for files that cannot be read may take one more set of files. */
function searchUntil(deadlineMs: number): () => boolean {
  let takes = 0;
  return () => {
    takes += 1;
    return takes <= search.mostTakes && performance.now() < deadlineMs - search.timeoutMs;
  };
}

/** Compares what can be read of a workspace with the base. */
async function compareReadable(run: RunScript, workdir: string, mayTake: () => boolean): Promise<Compared> {
  const listed = await run(readableScript, [workdir]);
  if (listed.exitCode !== needsListing || listed.truncated || listed.timedOut) {
    return { taken: listed.exitCode === unreadable ? 'unreadable' : listed, unread: [] };
  }
  const files = await listFiles(run, workdir, listed.stdout, 'readable');
  if (typeof files === 'string' || !('present' in files)) return { taken: files, unread: [] };
  const closed = unreadDirectories(listed);
  // Git removes a name itself if it is gone, and does not if it cannot be read.
  const take = async (names: readonly string[]) => run(takeOnlyScript, [workdir], await stdinOf(names));
  const unread = await takeReadable({ take, mayTake }, [...files.present, ...files.removed]);
  if ('exitCode' in unread) return { taken: unread, unread: closed };
  return { taken: await run(differenceScript, [workdir]), unread: [...closed, ...unread] };
}

interface Taking {
  take(names: readonly string[]): Promise<ExecResult>;
  mayTake(): boolean;
}

/** Takes files by halves, until each is taken or counts as unread. Returns those, or the result of a script that was cut off. */
async function takeReadable(taking: Taking, names: readonly string[]): Promise<readonly string[] | ExecResult> {
  if (names.length === 0) return [];
  if (!taking.mayTake()) return names;
  const taken = await taking.take(names);
  if (wasCutOff(taken) || isTooMuch(taken)) return taken;
  if (taken.exitCode === 0) return [];
  if (names.length === 1) return names;
  let left: readonly string[] = [];
  for (const half of [names.slice(0, names.length >> 1), names.slice(names.length >> 1)]) {
    const found = await takeReadable(taking, half);
    if ('exitCode' in found) return found;
    left = left.concat(found);
  }
  return left;
}

/** Whether the change is above a limit. A file that just fits on the sandbox's disk does not fit there twice. */
const isTooMuch = ({ exitCode, stderr, stdout, truncated }: ExecResult): boolean =>
  truncated ||
  stdout.length > maxPatchBytes ||
  exitCode === tooMuch ||
  (exitCode !== 0 && stderr.includes('File too large'));

/** Returns a diff without changes. */
export async function emptyDiff(store: Store, baseCommit: string): Promise<Diff> {
  return { patch: await putPatch(store, ''), baseCommit, files: 0, dropped: 0, tooLarge: false };
}

const putPatch = (store: Store, patch: Buffer | string) => store.put(Buffer.from(patch), 'text/x-diff');
