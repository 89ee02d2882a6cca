import { packTree } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { retryLate } from '../late.ts';
import { joinParts, patchParts } from '../patch/patch-parts.ts';
import { gitPrelude, octalName, plainRepository } from '../plain-git.ts';
import type { Restored } from './apply-protected.ts';
import { filterPatch } from './filter-patch.ts';
import { matcher } from './patterns.ts';
import { modulePaths, type Protection, protectedPatterns, runnerModules } from './rules.ts';

const limits = { timeoutMs: 120_000, maxOutputBytes: 64 * 1024 } as const;
const namedPaths = 5;
const pathLength = 120;
const directory = '/tmp/temper-restore';

/**
 * Takes the patch back in the workspace $1, unless that was done before. An interrupted attempt has done all or nothing: git
 * checks a patch as a whole before it writes.
 */
const script = `
${gitPrelude}${plainRepository}
rm -rf ${directory} && mkdir -p ${directory} && tar -x -o -f - -C ${directory} && plain ${directory}/git && cd "$1" || exit
export GIT_DIR=${directory}/git GIT_WORK_TREE="$1"
take_back() { git apply --binary --whitespace=nowarn -R ${directory}/patch; }
# Removes what no diff shows at the place of a deleted file: a link that leads out of the workspace, there or above.
clear_all() {
  while IFS= read -r line; do
    path=$(printf '%b.' "$line") path=\${path%.}
    rest=$path above=
    while [ "$rest" != "\${rest#*/}" ]; do
      above=$above\${rest%%/*} rest=\${rest#*/}
      [ ! -L "./$above" ] || rm -f -- "./$above"
      above=$above/
    done
    rm -rf -- "./$path"
  done <${directory}/deleted
}
# The agent may have closed its own directories, even to itself.
git apply --check --binary ${directory}/patch 2>/dev/null || take_back 2>/dev/null || {
  chmod -R u+rwX . 2>/dev/null
  clear_all && take_back
} || exit
exec rm -rf ${directory}
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
 * Takes the changes of protected files back in the workspace that the patch was captured from. Runs as the agent, whose files
 * they are. Returns a refusal if the agent has made that impossible. Throws EvaluationTimedOut.
 */
export async function restoreProtected(
  sandbox: Pick<Sandbox, 'exec'>,
  { workdir, patch, protection, applies, attempt }: PatchToRestore,
  signal: AbortSignal,
): Promise<{ readonly refusal: string | null; readonly restored: Restored | null }> {
  const { restored: names } = filterPatch(patch, protectedPatterns(protection), { mergeSections: false });
  if (names.length === 0) return { refusal: null, restored: null };
  const left = new Set(names);
  const parts = patchParts(patch).filter((part) => part.names.some((name) => left.has(name)));
  const paths = names
    .slice(0, namedPaths)
    .map((name) => Buffer.from(name, 'latin1').toString('utf8').slice(0, pathLength));
  const restored = { count: names.length, paths };
  if (!applies) return { refusal: null, restored };
  const deleted = parts.filter(({ change }) => change === 'deleted').flatMap((part) => part.names);
  const files = {
    patch: joinParts(parts),
    deleted: Buffer.from(deleted.map((name) => `${octalName(name)}\n`).join('')),
  };
  const tree = new Map(Object.entries(files).map(([name, bytes]) => [name, { mode: 0o644, bytes }]));
  const stdin = await packTree(tree, { uid: 0, gid: 0 });
  const argv = ['sh', '-c', script, 'restore', workdir] as const;
  const done = await sandbox.exec({ account: 'agent', cwd: '/', argv: [...argv], env: {}, stdin, ...limits }, signal);
  retryLate(done, attempt, "restoring protected files in the agent's own sandbox");
  if (done.exitCode === 0) return { refusal: null, restored };
  const output = done.stderr.toString('utf8').trim().slice(-2000);
  return { refusal: `protected files could not be restored: ${output}`, restored: null };
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
