import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { type FileEntry, packTree } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { gitPrelude, octal, plainRepository } from '../plain-git.ts';
import { joinParts, type PatchPart, patchParts } from './patch-parts.ts';

/** For all ways together. */
const timeoutMs = 120_000;
const outputBytes = 64 * 1024;
/** Where the patch lies while it is applied: as a whole, and in the two parts that the exact way takes one after the other. */
const place = '/tmp/temper-patch';

/** On stdin the files, as a tar. With this exit code nothing is said of the patch. */
const notPut = 79;
const unpack = `mkdir -p ${place} && tar -x -o -f - -C ${place} || exit ${notPut}\n`;

/** Every attempt finds the tree as it was at the base commit; what is ignored there stays. */
const reset = `git reset -q --hard && git clean -fdq`;

/**
 * A directory of the base that is a file now may still hold what no diff has: ignored files, the \`.git\` of a repository.
 * One that holds tracked files which are not gone is left alone: the patch was made of another tree.
 */
const clear = `
clear() {
  left=$(git ls-files -s -- "$1" | while read -r mode _; do [ "$mode" = 160000 ] || echo; done | wc -l)
  [ -L "$1" ] || [ ! -d "$1" ] || [ "$left" -ne "$(git ls-files -d -- "$1" | wc -l)" ] || rm -rf "$1"
}
clear_all() {
  export GIT_LITERAL_PATHSPECS=1
  while IFS= read -r line; do path=$(printf '%b.' "$line"); clear "./\${path%.}" || return; done
}
plainly() { [ ! -s "$2" ] || GIT_DIR=${place}/git GIT_WORK_TREE="$1" git apply --binary --whitespace=nowarn "$2"; }
`;

/** $1 workspace. Exit code 76: there is no such program here. */
const ladder = {
  /** Byte for byte, as captured: it always applies to the base commit that it was taken against. */
  exact: `plain ${place}/git && plainly "$1" ${place}/first && clear_all <${place}/directories && plainly "$1" ${place}/second`,
  /** Line ends as the repository wants them, and a merge where the patch names blobs that the repository has. */
  'three-way': `git apply --3way --whitespace=nowarn ${place}/whole && git reset -q`,
  /** Near the place that the patch names. The official harness of SWE-bench comes down to it as well. */
  fuzzy: `command -v patch >/dev/null || exit 76; patch --batch --forward --fuzz=5 -p1 --no-backup-if-mismatch --reject-file=- -i ${place}/whole && git reset -q`,
} as const;

/** How a patch was applied. What a rollout captured applies exactly; the other ways are for patches from elsewhere. */
export type Applied = keyof typeof ladder;

const ways = ['exact', 'three-way', 'fuzzy'] as const satisfies readonly Applied[];
/** The exit code is the attempt's, also when nothing can be put back. */
const giveUp = `code=$?; rm -rf ${place}/git; ${reset}; exit $code`;

export interface Application {
  /** Null when no way led to the whole patch: nothing of it is in the workspace then. */
  readonly applied: Applied | null;
  /** What was said to the first way, for people to read. */
  readonly refusal: string;
}

/** Applies a patch to a fresh workspace at its base commit: all of it, or nothing. */
export async function applyPatch(
  sandbox: Pick<Sandbox, 'exec'>,
  workdir: string,
  patch: Uint8Array,
  signal: AbortSignal,
): Promise<Application> {
  if (patch.byteLength === 0) return { applied: 'exact', refusal: '' };
  const tar = await packTree(filesOf(patch), { uid: 0, gid: 0 });
  const deadlineMs = Date.now() + timeoutMs;
  const run = (script: string, stdin?: Uint8Array) => {
    const argv = [
      'sh',
      '-c',
      `${gitPrelude}${plainRepository}${clear}cd "$1" || exit\n${script}`,
      'sh',
      workdir,
    ] as const;
    const limits = { timeoutMs: Math.max(1, deadlineMs - Date.now()), maxOutputBytes: outputBytes };
    const input = stdin === undefined ? {} : { stdin };
    return sandbox.exec({ account: 'agent', cwd: '/', argv: [...argv], env: {}, ...input, ...limits }, signal);
  };
  const said: string[] = [];
  for (const way of ways) {
    // The files come with the first script: a command of its own costs as much as applying them.
    const first = way === ways[0];
    const script = `${first ? unpack : ''}( ${ladder[way]} ) && exec rm -rf ${place}\n${giveUp}`;
    const { exitCode, timedOut, stdout, stderr } = await run(script, first ? tar : undefined);
    if (exitCode === notPut) throw unputtable(stderr.toString('utf8').trim().slice(-300));
    if (exitCode === 0) return { applied: way, refusal: said[0] ?? '' };
    said.push(`${stderr}${stdout}`.trim().slice(-2000) || `${way}: ended with exit code ${exitCode}`);
    if (timedOut) break;
  }
  return { applied: null, refusal: said[0] ?? '' };
}

/** The host's matter: nothing of the policy's has run in this sandbox yet. */
const unputtable = (said: string): TemperFailure =>
  new TemperFailure(
    /no space left|file size limit|quota/i.test(said) ? 'DiskFull' : 'SandboxUnavailable',
    `expected to put the patch at ${place}, got: ${said}`,
  );

/** Each new file is looked at, unless they are too many: then only those that deleted ones make room for. */
const fewFiles = 200;

function filesOf(patch: Uint8Array): ReadonlyMap<string, FileEntry> {
  const parts = patchParts(patch);
  const added = parts.filter(({ change, path }) => change === 'added' && path !== null);
  const emptied = new Set(
    parts.filter(({ change }) => change === 'deleted').flatMap(({ names }) => names.flatMap(above)),
  );
  const late = new Set(
    added.length <= fewFiles ? added : added.filter(({ path }) => path !== null && emptied.has(path)),
  );
  const isLate = (part: PatchPart): boolean => late.has(part);
  const files = {
    whole: patch,
    first: joinParts(parts.filter((part) => !isLate(part))),
    second: joinParts(parts.filter(isLate)),
    directories: Buffer.from([...late].map(({ path }) => `${octal(path ?? '')}\n`).join('')),
  };
  return new Map(Object.entries(files).map(([name, bytes]) => [name, { mode: 0o644, bytes }]));
}

/** The directories that a file lies in. */
const above = (name: string): readonly string[] => [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index));
