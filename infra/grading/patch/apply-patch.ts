import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type FileEntry, packTree } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { wasCutOff } from '../late.ts';
import { gitPrelude, octalName, plainRepository } from '../plain-git.ts';
import { directoriesAbove, joinParts, type PatchPart, patchParts } from './patch-parts.ts';

/** Limit of all ways together. */
const timeoutMs = 120_000;
const outputBytes = 64 * 1024;
/**
 * The patch's directory while it is applied. Files: `whole`, the patch; `first` and `second`, the two parts that the exact
 * way applies one after the other; `directories`, the paths that the second part adds.
 */
const directory = '/tmp/temper-patch';

/** The exit code of the script when the patch's files could not be written, so that it was not even tried. */
const notUnpacked = 79;
/** Reads the patch's files from stdin, as a tar. */
const unpack = `mkdir -p ${directory} && tar -x -o -f - -C ${directory} || exit ${notUnpacked}\n`;

/** Restores the tree of the base commit before each way; ignored files stay. */
const reset = `git reset -q --hard && git clean -fdq`;

/**
 * Shell functions of the exact way.
 *
 * A directory of the base that the patch replaces by a file may still hold files that no diff contains: ignored files, or the `.git`
 * of a repository. `clear` removes such a directory, unless tracked files are left in it: then the patch was made against
 * another tree.
 */
const functions = `
clear() {
  # Tracked files below $1, except submodules; it may go if all of them are deleted.
  tracked=$(git ls-files -s -- "$1" | while read -r mode _; do [ "$mode" = 160000 ] || echo; done | wc -l)
  [ -L "$1" ] || [ ! -d "$1" ] || [ "$tracked" -ne "$(git ls-files -d -- "$1" | wc -l)" ] || rm -rf "$1"
}
# Reads names as octalName writes them. The dot keeps line feeds at their end.
clear_all() {
  export GIT_LITERAL_PATHSPECS=1
  while IFS= read -r line; do path=$(printf '%b.' "$line"); clear "./\${path%.}" || return; done
}
# Applies the patch $2, unless it is empty, to the workspace $1, by a repository without attributes and settings.
apply_plainly() { [ ! -s "$2" ] || GIT_DIR=${directory}/git GIT_WORK_TREE="$1" git apply --binary --whitespace=nowarn "$2"; }
`;

/** The exit code of the fuzzy way where its program is missing. */
const noPatch = 76;
const noPatchText = 'the sandbox has no `patch`, which tolerates other context than git does';

/** The scripts of the ways. $1 is the workspace. */
const scripts = {
  /** Applies byte for byte. A captured patch always applies so to the base commit that it was taken against. */
  exact: `plain ${directory}/git && apply_plainly "$1" ${directory}/first && clear_all <${directory}/directories && apply_plainly "$1" ${directory}/second`,
  /** Converts line ends as the repository asks, and merges where the patch names blobs that the repository has. */
  'three-way': `git apply --3way --whitespace=nowarn ${directory}/whole && git reset -q`,
  /** Tolerates shifted and changed context, as the official harness of SWE-bench does in the end. */
  fuzzy: `command -v patch >/dev/null || exit ${noPatch}; patch --batch --forward --fuzz=5 -p1 --no-backup-if-mismatch --reject-file=- -i ${directory}/whole && git reset -q`,
} as const;

/** The way in which a patch was applied. A rollout's own patch applies exactly; the other ways are for third-party patches. */
export type Applied = keyof typeof scripts;

const ways = ['exact', 'three-way', 'fuzzy'] as const satisfies readonly Applied[];
/** Undoes a failed way, and keeps its exit code even if the tree cannot be restored. */
const giveUp = `code=$?; rm -rf ${directory}/git; ${reset}; exit $code`;

export interface Application {
  /** Null if no way applied the whole patch: the workspace is then unchanged. */
  readonly applied: Applied | null;
  /** The output of the first way that failed, for readers, and what the others lack. */
  readonly refusal: string;
  /** Whether the attempts took longer than two minutes together, or one of them was killed. */
  readonly timedOut: boolean;
}

/** Applies a patch to a fresh workspace at its base commit, as a whole or not at all. */
export async function applyPatch(
  sandbox: Pick<Sandbox, 'exec'>,
  workdir: string,
  patch: Uint8Array,
  signal: AbortSignal,
): Promise<Application> {
  if (patch.byteLength === 0) return { applied: 'exact', refusal: '', timedOut: false };
  const tar = await packTree(filesOf(patch), { uid: 0, gid: 0 });
  const deadlineMs = performance.now() + timeoutMs;
  const run = (script: string, stdin?: Uint8Array) => {
    const program = `${gitPrelude}${plainRepository}${functions}cd "$1" || exit\n${script}`;
    return sandbox.exec(
      {
        account: 'agent',
        cwd: '/',
        argv: ['sh', '-c', program, 'sh', workdir],
        env: {},
        timeoutMs: Math.max(1, deadlineMs - performance.now()),
        maxOutputBytes: outputBytes,
        stdin,
      },
      signal,
    );
  };
  const outputs: string[] = [];
  for (const way of ways) {
    // The first script also unpacks the files: a separate command would cost as much as applying them.
    const first = way === ways[0];
    const script = `${first ? unpack : ''}( ${scripts[way]} ) && exec rm -rf ${directory}\n${giveUp}`;
    const ended = await run(script, first ? tar : undefined);
    const { exitCode, stdout, stderr } = ended;
    if (exitCode === notUnpacked) throw unpackFailure(stderr.toString('utf8').trim().slice(-300));
    if (exitCode === 0) return { applied: way, refusal: outputs[0] ?? '', timedOut: false };
    if (way === 'fuzzy' && exitCode === noPatch)
      return { applied: null, refusal: `${outputs[0]}; ${noPatchText}`, timedOut: false };
    outputs.push(`${stderr}${stdout}`.trim().slice(-2000) || `${way}: ended with exit code ${exitCode}`);
    if (wasCutOff(ended)) return { applied: null, refusal: outputs[0] ?? '', timedOut: true };
  }
  return { applied: null, refusal: outputs[0] ?? '', timedOut: false };
}

/** Returns a failure of the host, since no code of the policy has run in this sandbox yet. */
const unpackFailure = (output: string): TemperFailure =>
  new TemperFailure(
    /no space left|file size limit|quota/i.test(output) ? 'DiskFull' : 'SandboxUnavailable',
    `the patch could not be written to ${directory}: ${output}; the evaluation is retried`,
  );

/** The number of new files up to which all are applied late; above it, only those that replace a directory. */
const fewFiles = 200;

/** Returns the files of `directory`. */
function filesOf(patch: Uint8Array): ReadonlyMap<string, FileEntry> {
  const parts = patchParts(patch);
  const added = parts.filter(({ change, path }) => change === 'added' && path !== null);
  const emptied = new Set(
    parts.filter(({ change }) => change === 'deleted').flatMap(({ names }) => names.flatMap(directoriesAbove)),
  );
  const late = new Set(
    added.length <= fewFiles ? added : added.filter(({ path }) => path !== null && emptied.has(path)),
  );
  const isLate = (part: PatchPart): boolean => late.has(part);
  const files = {
    whole: joinParts(parts),
    first: joinParts(parts.filter((part) => !isLate(part))),
    second: joinParts(parts.filter(isLate)),
    directories: Buffer.from([...late].map(({ path }) => `${octalName(path ?? '')}\n`).join('')),
  };
  return new Map(Object.entries(files).map(([name, bytes]) => [name, { mode: 0o644, bytes }]));
}
