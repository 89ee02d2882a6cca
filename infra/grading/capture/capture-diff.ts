import type { Diff } from '../../../workflows/contracts/diff.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ExecResult, Sandbox } from '../../sandbox/sandbox.ts';
import type { Store } from '../../store/store.ts';
import { flagCapture, tooLargeFlags } from '../flags/capture.ts';
import { withoutEscapingLinks } from '../patch/patch-links.ts';
import { gitPrelude } from '../plain-git.ts';
import { keptBase, keptTree } from '../workspace/kept-base.ts';
import { filesIn, isUnreadable, listScript, type RunScript, stdinOf, unreadable } from './changed-files.ts';

/** For all of a capture. Twice this fits into the stage. What takes longer twice was made to: the base commit is indexed. */
const timeoutMs = 120_000;
/** A patch above this is kept as none: no reviewable change is that large, and the evaluation counts it as failed. */
const maxPatchBytes = 16 * 1024 * 1024;
/** Of the changed files, before and after together. Git holds what it compares in the sandbox's memory. */
const maxContentBytes = 128 * 1024 * 1024;
/** Names of all files, ignored ones too. */
const maxListBytes = 64 * 1024 * 1024;

/** The agent may have made its files unreadable for others, the workdir itself too; nobody but it can undo that. */
const readableScript = 'chmod u+rwx,go+rx "$1"; chmod -R u+rwX,go+rX "$1" 2>/dev/null; true';
const tooMuch = 78;
const newFiles = 79;

/**
 * $1 workspace. \`take\` reads files that are there, or gone, by their names on stdin; \`difference\` prints what was taken
 * against the base tree, as the files are. Only the kept repository is used, so that hooks, filters, attributes and config of
 * the agent's have no say. The copied index keeps its time: by that git knows which files may have changed in the second in
 * which it read them, and reads those again.
 */
const inKept = `
${gitPrelude}
[ -r "$1" ] && cd "$1" || exit ${unreadable}
export GIT_DIR=${keptBase} GIT_WORK_TREE="$1"
now=${keptBase}/now
take() { GIT_INDEX_FILE=$now git update-index -z --add --remove --replace --stdin; }
difference() {
  export GIT_INDEX_FILE=$now
  read -r tree <${keptTree} && git diff-index --cached --raw --no-renames --abbrev=64 "$tree" >${keptBase}/raw || exit
  [ -s ${keptBase}/raw ] || exit 0
  while read -r _ _ old new _; do printf '%s\\n%s\\n' "$old" "$new"; done <${keptBase}/raw |
    git cat-file --batch-check='%(objectsize)' | { sum=0; while read -r size rest; do [ -n "$rest" ] || sum=$((sum + size)); done; [ $sum -le ${maxContentBytes} ]; } || exit ${tooMuch}
  exec git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames --diff-algorithm=myers --src-prefix=a/ --dst-prefix=b/ "$tree"
}
`;

/**
 * In one command, as most agents add no file: the difference of the base's files. Or lists of all files, where there are
 * others, or one of the base's is nothing that git could take (a pipe, a socket).
 */
const firstScript = `
${inKept}
[ ! -e $now.lock ] || rm $now.lock
cp -p ${keptBase}/index $now || exit
if { git ls-files -o || echo failed; } | read -r _ || ! git ls-files -z >${keptBase}/names || ! take <${keptBase}/names; then
  ${listScript}
  exit ${newFiles}
fi
difference
`;
const removeScript = `${inKept}GIT_INDEX_FILE=$now git update-index -z --force-remove --stdin`;
const takeScript = `${inKept}take || exit; difference`;

export interface DiffOptions {
  readonly workdir: string;
  readonly baseCommit: string;
  /** Has the stage been tried before? Git that is too slow is first taken for a stalled host, and only then for the agent's doing. */
  readonly retried: boolean;
}

/** Call only after every process of the agent has been ended. Git runs inside the sandbox, never on the host. */
export async function captureDiff(
  sandbox: Pick<Sandbox, 'exec'>,
  store: Store,
  { workdir, baseCommit, retried }: DiffOptions,
  signal: AbortSignal,
): Promise<Diff> {
  const deadlineMs = Date.now() + timeoutMs;
  const inTime = { env: {}, cwd: '/' } as const;
  const left = (): number => Math.max(1_000, deadlineMs - Date.now());
  const run: RunScript = (script, args, stdin) => {
    const argv = ['sh', '-c', script, 'sh', ...args] as const;
    const input = stdin === undefined ? {} : { stdin };
    return sandbox.exec(
      { ...inTime, ...input, account: 'grader', argv: [...argv], timeoutMs: left(), maxOutputBytes: maxListBytes },
      signal,
    );
  };
  let taken = await compare(run, workdir);
  if (taken === 'unreadable') {
    const argv = ['sh', '-c', readableScript, 'sh', workdir] as const;
    const request = { ...inTime, account: 'agent', argv: [...argv], timeoutMs: left(), maxOutputBytes: 1024 } as const;
    await sandbox.exec(request, signal);
    taken = await compare(run, workdir);
  }
  // What nobody can read is no change that could be judged; only the agent can have brought that about.
  if (taken === 'unreadable') return emptyDiff(store, baseCommit);
  if (taken !== 'too-many' && isStalled(taken) && !retried) {
    throw new TemperFailure(
      'SandboxUnavailable',
      `expected a diff within ${timeoutMs / 1000} s, got none; it is taken once more`,
    );
  }
  if (taken === 'too-many' || isStalled(taken) || isTooMuch(taken)) {
    return { patch: await putPatch(store, ''), baseCommit, files: 0, dropped: 0, tooLarge: true, flags: tooLargeFlags };
  }
  if (taken.exitCode !== 0) {
    const said = taken.stderr.toString('utf8').trim().slice(-300);
    throw new TemperFailure(
      said.includes('No space left on device') ? 'DiskFull' : 'SandboxLost',
      `expected a diff against ${baseCommit}, got exit code ${taken.exitCode}: ${said}`,
    );
  }
  const { patch, files, dropped } = withoutEscapingLinks(taken.stdout);
  const names = refused(taken);
  const flags = flagCapture({ links: dropped, names });
  const counted = { baseCommit, files, dropped: dropped.length + names.length, tooLarge: false };
  return { patch: await putPatch(store, patch), ...counted, ...(flags.length > 0 && { flags }) };
}

async function compare(run: RunScript, workdir: string): Promise<ExecResult | 'unreadable' | 'too-many'> {
  const first = await run(firstScript, [workdir]);
  if (isUnreadable(first)) return 'unreadable';
  if (first.exitCode !== newFiles || first.truncated || first.timedOut) return first;
  const files = await filesIn(run, workdir, first.stdout);
  if (typeof files === 'string' || !('present' in files)) return files;
  if (files.removed.length > 0) {
    const removed = await run(removeScript, [workdir], stdinOf(files.removed));
    if (removed.exitCode !== 0 || removed.timedOut) return removed;
  }
  const result = await run(takeScript, [workdir], stdinOf(files.present));
  return isUnreadable(result) ? 'unreadable' : result;
}

/** Out of time, or killed by the kernel for its memory: by what the agent left there, or on a host that has too much to do. */
const isStalled = ({ timedOut, exitCode }: ExecResult): boolean => timedOut || exitCode === 137;

/** A file that only just fits into the sandbox's disk fits no second time. */
const isTooMuch = ({ exitCode, stderr, stdout, truncated }: ExecResult): boolean =>
  truncated ||
  stdout.length > maxPatchBytes ||
  exitCode === tooMuch ||
  (exitCode !== 0 && stderr.includes('File too large'));

/** Names that git takes into no tree, such as \`.GIT/config\`. */
const refused = ({ stderr }: ExecResult): readonly string[] =>
  [...stderr.toString('latin1').matchAll(/^Ignoring path (.*)/gm)].map(([, name = '']) => name);

/** What is left of a workspace whose sandbox the agent itself ended: nothing. */
export async function emptyDiff(store: Store, baseCommit: string): Promise<Diff> {
  return { patch: await putPatch(store, ''), baseCommit, files: 0, dropped: 0, tooLarge: false };
}

const putPatch = (store: Store, patch: Buffer | string) => store.put(Buffer.from(patch), 'text/x-diff');
