import type { WarmUpProgress } from '../../../../activities/interfaces/trainer.ts';
import type { StepRecord } from '../../../../infra/report/run-records.ts';
import { waitText } from '../../../../workflows/algorithms/staleness.ts';
import type { RunStatus } from '../../../../workflows/contracts/run.ts';
import { counted } from '../../text/output.ts';

/** Describes a finished step in one line. */
export function stepText(
  { result, trained, zeroVariance, dropped }: StepRecord,
  steps: number,
  tookSeconds: number,
): string {
  const fates = new Map<string, number>([
    ['trained', trained.length],
    ['zero-variance', zeroVariance.length],
  ]);
  for (const [, fate] of dropped) fates.set(fate, (fates.get(fate) ?? 0) + 1);
  const groups = [...fates]
    .filter(([, count]) => count > 0)
    .map(([fate, count]) => `${count} ${fate}${fate === 'zero-variance' ? equalText(result) : ''}`);
  return [
    `step ${String(result.step).padStart(String(steps).length)}/${steps}`,
    `reward ${result.meanReward === null ? '  – ' : result.meanReward.toFixed(2)} ${bar(result.meanReward ?? 0)}`,
    ...(scoredDiffers(result) ? [`${result.scoredReward?.toFixed(2)} over all scored rollouts`] : []),
    `groups: ${groups.join(', ')}`,
    `staleness ${result.staleness}`,
    `${tookSeconds.toFixed(1)} s`,
  ].join('  ');
}

/** Says how many groups with equal rewards have all 0 or all 1. */
function equalText({ equalGroups: { 'all-0': zeros, 'all-1': ones } }: StepRecord['result']): string {
  const some = [...(zeros > 0 ? [`${zeros} all 0`] : []), ...(ones > 0 ? [`${ones} all 1`] : [])];
  return some.length === 0 ? '' : ` (${some.join(', ')})`;
}

/** Whether the mean reward looks different with the rollouts of groups that were not trained. */
const scoredDiffers = ({ meanReward, scoredReward }: StepRecord['result']): boolean =>
  scoredReward !== null && scoredReward.toFixed(2) !== meanReward?.toFixed(2);

/** Describes the step in progress: the live line below the finished steps. */
export function progressText(status: RunStatus, warmUp: WarmUpProgress | null): string {
  if (warmUp !== null) return `preparing · warm-up ${warmUp.warmUpStep}/${warmUp.of}`;
  const { phase, step, steps, inFlight, waitsFor, rollouts, flags, rolloutsStarted } = status;
  const making = waitsFor.length > 0 ? waitText(status) : `step ${Math.min(step + 1, steps)}/${steps} in progress`;
  const ended = Object.values(rollouts).reduce((sum, count) => sum + count, 0);
  const odd = Object.entries(rollouts).filter(([outcome, count]) => outcome !== 'scored' && count > 0);
  return [
    phase === 'running' ? making : phase,
    `${counted(inFlight.length, 'group')} in flight`,
    `${ended} of ${rolloutsStarted} rollouts ended`,
    ...odd.map(([outcome, count]) => `${outcome} ${count}`),
    ...(flags.rollouts === 0 ? [] : [`flagged ${flags.rollouts}`]),
  ].join(' · ');
}

function bar(share: number): string {
  const width = 20;
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return `${'█'.repeat(full)}${'·'.repeat(width - full)}`;
}
