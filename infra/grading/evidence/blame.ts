import { type Evidence, shared } from './evidence.ts';
import type { KnownRun } from './known-runs.ts';

export interface RunsToCompare {
  /** The reward of the work that is judged. */
  readonly reward: number;
  /** The run over the untouched workspace. */
  readonly untouched: KnownRun;
  /** The runs over the reference solution, where it has to show the same. */
  readonly references: readonly KnownRun[];
}

/**
 * Returns the evidence by which the task or the host is to blame for a verdict: what all these runs show. Work that is better than the
 * runs without it is never at the mercy of a reference solution that fails now and then, and a solution that is better than the
 * untouched workspace shows that the tests can tell good work. Pure.
 */
export function blamed(
  evidence: readonly Evidence[],
  { reward, untouched, references }: RunsToCompare,
): readonly Evidence[] {
  const runs = [untouched, ...references];
  if (runs.every((run) => reward > run.reward)) return [];
  if (references.some((reference) => reference.reward > untouched.reward)) return [];
  const proved = evidence.filter((one) => references.every((reference) => proves(reference, one)));
  return runs.reduce<readonly Evidence[]>((left, run) => shared(left, run.evidence), proved);
}

/** Whether a run over the reference solution can prove evidence. One that was cut short might have come to another end. */
const proves = ({ cutBy }: KnownRun, { kind }: Evidence): boolean =>
  cutBy === null || (cutBy === 'limit' && kind === 'full-disk');
