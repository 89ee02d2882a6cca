import type { Diff } from '../../../workflows/contracts/diff.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import type { Store } from '../../store/store.ts';
import { flagCapture, tooLargeFlags } from '../flags/capture.ts';
import { wasCutOff } from '../late.ts';
import { withoutEscapingLinks } from '../patch/patch-links.ts';
import { gitPrelude } from '../plain-git.ts';
import { keptBase, keptTree } from '../workspace/kept-base.ts';
import { isUnreadable, listFiles, listScript, type RunScript, stdinOf, unreadable } from './changed-files.ts';
import { openWorkdir } from './open-workdir.ts';

/**
 * Limit of one capture; the stage has time for two. A capture that takes longer twice was made slow by the agent, since the
 * base commit is indexed.
 */
const timeoutMs = 120_000;
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

/** Thrown by the first capture of a workspace that takes too long. */
export class CaptureStalled extends TemperFailure {
  constructor() {
    const text = `the diff was not captured within ${timeoutMs / 1000} s; it is captured once more`;
    super('SandboxUnavailable', text);
  }
}

export interface DiffOptions {
  readonly workdir: string;
  readonly baseCommit: string;
  /** Whether a capture has stalled before. The first time counts as the host's fault, the second as the agent's. */
  readonly stalledBefore: boolean;
}

/**
 * Captures the changes of the workspace since its base commit. Call it only after every process of the agent has ended. Git
 * runs inside the sandbox, never on the host.
 */
export async function captureDiff(
  sandbox: Pick<Sandbox, 'exec'>,
  store: Store,
  { workdir, baseCommit, stalledBefore }: DiffOptions,
  signal: AbortSignal,
): Promise<Diff> {
  const deadlineMs = Date.now() + timeoutMs;
  const timeLeftMs = (): number => Math.max(1_000, deadlineMs - Date.now());
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
  if (taken === 'unreadable') {
    await openWorkdir(sandbox, { workdir, timeLeftMs }, signal);
    taken = await compare(run, workdir);
  }
  // An unreadable change cannot be judged, and only the agent can have caused it.
  if (taken === 'unreadable') return emptyDiff(store, baseCommit);
  if (taken !== 'too-many' && wasCutOff(taken) && !stalledBefore) throw new CaptureStalled();
  if (taken === 'too-many' || wasCutOff(taken) || isTooMuch(taken)) {
    return { patch: await putPatch(store, ''), baseCommit, files: 0, dropped: 0, tooLarge: true, flags: tooLargeFlags };
  }
  if (taken.exitCode !== 0) {
    const output = taken.stderr.toString('utf8').trim().slice(-300);
    throw new TemperFailure(
      output.includes('No space left on device') ? 'DiskFull' : 'SandboxLost',
      `the diff against ${baseCommit} could not be captured: git ended with exit code ${taken.exitCode}: ${output}`,
    );
  }
  const { patch, files, dropped } = withoutEscapingLinks(taken.stdout);
  const names = refusedNames(taken);
  const flags = flagCapture({ links: dropped, names });
  return {
    patch: await putPatch(store, patch),
    baseCommit,
    files,
    dropped: dropped.length + names.length,
    tooLarge: false,
    ...(flags.length > 0 && { flags }),
  };
}

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
    const removed = await run(removeScript, [workdir], stdinOf(files.removed));
    if (removed.exitCode !== 0 || removed.timedOut) return removed;
  }
  const result = await run(takeScript, [workdir], stdinOf(files.present));
  return isUnreadable(result) ? 'unreadable' : result;
}

/** Whether the change is above a limit. A file that just fits on the sandbox's disk does not fit there twice. */
const isTooMuch = ({ exitCode, stderr, stdout, truncated }: ExecResult): boolean =>
  truncated ||
  stdout.length > maxPatchBytes ||
  exitCode === tooMuch ||
  (exitCode !== 0 && stderr.includes('File too large'));

/** Returns the names that git stores in no tree, such as `.GIT/config`. */
const refusedNames = ({ stderr }: ExecResult): readonly string[] =>
  [...stderr.toString('latin1').matchAll(/^Ignoring path (.*)/gm)].map(([, name = '']) => name);

/** Returns a diff without changes, for example for an agent that ended its own sandbox. */
export async function emptyDiff(store: Store, baseCommit: string): Promise<Diff> {
  return { patch: await putPatch(store, ''), baseCommit, files: 0, dropped: 0, tooLarge: false };
}

const putPatch = (store: Store, patch: Buffer | string) => store.put(Buffer.from(patch), 'text/x-diff');
