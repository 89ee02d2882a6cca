import type { Sandbox } from '../sandbox/sandbox.ts';
import { gitPrelude, plainRepository } from './plain-git.ts';

const timeoutMs = 120_000;
const outputBytes = 64 * 1024;
const patchFile = '/tmp/temper.patch';
const plainPlace = '/tmp/temper-apply.git';

/** Every attempt finds the tree as it was at the base commit; what is ignored there stays. */
const reset = `git reset -q --hard && git clean -fdq`;

/** $1 workspace. Exit code 76: there is no such program here. */
const ladder = {
  /** Byte for byte, as captured: it always applies to the base commit that it was taken against. */
  exact: `plain ${plainPlace} && GIT_DIR=${plainPlace} GIT_WORK_TREE="$1" git apply --binary --whitespace=nowarn ${patchFile}`,
  /** Line ends as the repository wants them, and a merge where the patch names blobs that the repository has. */
  'three-way': `git apply --3way --whitespace=nowarn ${patchFile} && git reset -q`,
  /** Near the place that the patch names. The official harness of SWE-bench comes down to it as well. */
  fuzzy: `command -v patch >/dev/null || exit 76; patch --batch --forward --fuzz=5 -p1 --no-backup-if-mismatch --reject-file=- -i ${patchFile} && git reset -q`,
} as const;

/** How a patch was applied. What a rollout captured applies exactly; the other ways are for patches from elsewhere. */
export type Applied = keyof typeof ladder;

export interface Application {
  /** Null when no way led to the whole patch: nothing of it is in the workspace then. */
  readonly applied: Applied | null;
  /** What was said to the first way, for people to read. */
  readonly refusal: string;
}

/** Applies a patch to a fresh workspace at its base commit: all of it, or nothing. */
export async function applyPatch(
  sandbox: Pick<Sandbox, 'exec' | 'putFiles'>,
  workdir: string,
  patch: Uint8Array,
  signal: AbortSignal,
): Promise<Application> {
  if (patch.byteLength === 0) return { applied: 'exact', refusal: '' };
  const tree = new Map([['temper.patch', { mode: 0o644, bytes: patch }]]);
  await sandbox.putFiles({ tree, at: '/tmp', owner: 'agent' }, signal);
  const run = (script: string) => {
    const argv = ['sh', '-c', `${gitPrelude}${plainRepository}cd "$1" || exit\n${script}`, 'sh', workdir] as const;
    const request = {
      account: 'agent',
      cwd: '/',
      argv: [...argv],
      env: {},
      timeoutMs,
      maxOutputBytes: outputBytes,
    } as const;
    return sandbox.exec(request, signal);
  };
  const said: string[] = [];
  for (const way of ways) {
    const { exitCode, timedOut, stdout, stderr } = await run(`( ${ladder[way]} ) && { ${tidy}; exit 0; }\n${giveUp}`);
    if (exitCode === 0) return { applied: way, refusal: said[0] ?? '' };
    said.push(`${stderr}${stdout}`.trim().slice(-2000) || `${way}: ended with exit code ${exitCode}`);
    if (timedOut) break;
  }
  return { applied: null, refusal: said[0] ?? '' };
}

const ways = ['exact', 'three-way', 'fuzzy'] as const satisfies readonly Applied[];
const tidy = `rm -rf ${plainPlace} ${patchFile}`;
/** The exit code is the attempt's, also when nothing can be put back. */
const giveUp = `code=$?; rm -rf ${plainPlace}; ${reset}; exit $code`;
