import { firstOfEach } from '../../workflows/algorithms/flags.ts';
import type { Flag } from '../../workflows/contracts/flags.ts';
import { wasEndedInside } from '../sandbox/failure.ts';
import { withoutSecrets } from '../sandbox/process-log.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Store } from '../store/store.ts';
import { flagPrograms } from './flags/beyond-diff.ts';
import { type DiffToJudge, runTests, tooLarge } from './judge-diff.ts';
import { type Judged, judgeRefused, judgeRun } from './judged.ts';
import type { BasePrograms } from './programs/base-programs.ts';
import { findFlags, findKept, keepFlags } from './programs/kept-programs.ts';
import { restorePrograms } from './programs/restore-programs.ts';
import { ownModules, restoreProtected } from './protection/restore-protected.ts';
import type { GradedTask } from './task.ts';
import { testsKey } from './tests/test-process.ts';

/** Nothing then tells which protected files the agent changed. */
const unread = 'not all files of the workspace could be read, so that protected files could not be restored';

export interface WorkToJudge extends DiffToJudge {
  /** The secrets of the agent's session, which no log may show. */
  readonly secrets: readonly string[];
}

/**
 * Restores the protected files that a diff changed in the agent's own sandbox, and runs the hidden tests there. If tests were
 * started before, it only waits for them.
 */
export async function judgeInPlace(
  sandbox: Sandbox,
  store: Store,
  input: WorkToJudge,
  signal: AbortSignal,
): Promise<Judged> {
  const { task, diff, workdir, timeoutMs, path, network, subject, secrets, attempt } = input;
  const patch = await store.get(diff.patch.digest);
  const protection = { ...task.protection, ownModules: ownModules(patch) };
  const asLeft = { patch, protection, subject, beyond: diff.flags ?? [] };
  if (diff.tooLarge) return judgeRefused(store, tooLarge, asLeft);
  if (diff.unread === true) return judgeRefused(store, unread, asLeft);
  const isFirst = (await sandbox.status(testsKey)).state === 'absent';
  // Code that the agent left must not run when the tests begin, unless they need it. Where the agent is root, so are the tests.
  if (isFirst && !task.keepProcesses) await sandbox.killProcesses('agent');
  const kept = isFirst ? await findKept(sandbox, signal) : { base: null, refusal: null };
  const early = await earlyFlags(sandbox, { task, base: kept.base, isFirst }, signal);
  const toJudge = { patch, protection, subject, beyond: early };
  if (kept.refusal !== null) return judgeRefused(store, kept.refusal, toJudge);
  const { refusal, restored } = await restoreProtected(
    sandbox,
    { workdir, patch, protection, applies: isFirst, attempt },
    signal,
  );
  if (refusal !== null) return judgeRefused(store, refusal, toJudge);
  const onFlags = async (flags: readonly Flag[]): Promise<void> => {
    if (isFirst && early.length + flags.length > 0) await keepFlags(sandbox, [...early, ...flags], signal);
  };
  const programs = await restorePrograms(sandbox, { base: kept.base, task, attempt, onFlags }, signal);
  const found = { ...toJudge, beyond: [...early, ...programs.flags] };
  if (programs.refusal !== null) return judgeRefused(store, programs.refusal, found);
  const { usedMb: diskBeforeMb } = await sandbox.diskUsage();
  const run = await runTests(sandbox, task, { workdir, timeoutMs, attempt, diskBeforeMb, path, network }, signal);
  const exposed = early.some(({ trick }) => trick === 'forgeable') ? ('forgeable' as const) : ('same-sandbox' as const);
  const exposure = run.exposure === undefined ? {} : { exposure: exposed };
  const told = { ...run, log: withoutSecrets(run.log, secrets), ...exposure };
  return judgeRun(store, told, found, { restored });
}

/** Returns the flags of an earlier attempt and those that can be raised before anything is restored. */
async function earlyFlags(
  sandbox: Sandbox,
  { task, base, isFirst }: EarlyState,
  signal: AbortSignal,
): Promise<readonly Flag[]> {
  const earlier = await findFlags(sandbox, signal);
  const forgeable = task.keepProcesses ? forgeableBy(sandbox, base) : [];
  // A later attempt could not distinguish the agent's changes from those of the tests.
  const changed = isFirst ? flagPrograms(await changedBy(sandbox)) : [];
  return firstOfEach([...earlier, ...forgeable, ...changed]);
}

interface EarlyState {
  readonly task: Pick<GradedTask, 'keepProcesses'>;
  readonly base: BasePrograms | null;
  /** Whether the tests have not begun. */
  readonly isFirst: boolean;
}

/**
 * Flags tests beside which processes of the agent run that may write the verdict: where both accounts are one, or where they can plant
 * a program for the tests once these have begun. `base` is null if the PATH leads to no directory of the agent's.
 */
function forgeableBy({ twoUids }: Pick<Sandbox, 'twoUids'>, base: BasePrograms | null): readonly Flag[] {
  if (twoUids && base === null) return [];
  const how = twoUids ? 'can write where its tests may find their programs' : 'is root';
  const evidence = `the agent ${how}, and its processes run on beside the tests in its sandbox (keep_processes)`;
  return [{ trick: 'forgeable', evidence }];
}

/** Lists the programs that an agent replaced, as one that is root can do. A list that it has made unreadable changes no verdict. */
async function changedBy({ twoUids, changes }: Sandbox): Promise<readonly string[]> {
  if (twoUids || changes === undefined) return [];
  try {
    return await changes.changedPrograms();
  } catch (error) {
    if (!wasEndedInside(error)) throw error;
    return [];
  }
}
