import { setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { flagsText } from '../algorithms/flags.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { searchAttributes, shownReward, shownText } from '../contracts/search-attributes.ts';
import { shareMemo } from '../contracts/share.ts';
import type { SweepInput, SweepResult, SweepStatus } from '../contracts/sweep.ts';
import { usedBySweep } from './budget.ts';
import type { SweepTally } from './tally.ts';

export interface SweepView {
  phase: SweepStatus['phase'];
  /** Updates details, search attributes and memo. The last two cost a history event each, so they change once per phase. */
  show(): void;
  finished(result: SweepResult): void;
  /** Shows in the details that the sweep ends with this error. */
  failed(error: unknown): void;
  status(): SweepStatus;
}

export function createSweepView(input: SweepInput, tally: SweepTally): SweepView {
  let shown = '';
  const view: SweepView = {
    phase: 'preparing',
    show() {
      const status = view.status();
      setCurrentDetails(details(status));
      const now = `${status.phase} ${status.policyVersion}`;
      if (now === shown) return;
      shown = now;
      upsertSearchAttributes([
        { key: searchAttributes.run, value: status.sweep },
        shownText(searchAttributes.agent, input.settings.agent),
        ...(status.policyVersion === null
          ? []
          : [{ key: searchAttributes.policyVersion, value: status.policyVersion }]),
        ...(status.meanReward === null ? [] : [shownReward(status.meanReward)]),
      ]);
      const { policy, startedAt } = tally;
      const { phase, ended, planned } = status;
      upsertMemo({
        phase,
        ended,
        planned,
        startedAt,
        ...(policy !== undefined && { runKey: policy.runKey, pool: policy.pool }),
        ...shareMemo(status.sweepKey, input.weight),
      });
    },
    finished(result) {
      view.phase = 'done';
      view.show();
      setCurrentDetails(`${details(view.status())}\n${found(result)}`);
    },
    failed(error) {
      setCurrentDetails(`**failed** while ${view.phase}: ${rootMessage(error)}\n\n${details(view.status())}`);
    },
    status() {
      const { workflowId: sweep, firstExecutionRunId: sweepKey } = workflowInfo();
      const { outcomes, leftOut, retried, counted, passed, rewards, flags, cost } = tally.sums;
      return {
        sweep,
        sweepKey,
        phase: view.phase === 'running' && tally.pausedBecause !== null ? 'paused' : view.phase,
        pausedBecause: tally.pausedBecause,
        ...tally.pin,
        ...(tally.policy !== undefined && { pool: tally.policy.pool }),
        tasks: tally.tasks,
        planned: tally.planned,
        ended: tally.ended,
        inFlight: tally.inFlight.size,
        outcomes,
        leftOut,
        retried,
        counted,
        passed,
        meanReward: counted === 0 ? null : rewards / counted,
        flags,
        endedEarly: tally.endedEarly,
        cost,
        budget: { limits: tally.budget, used: usedBySweep(tally) },
      };
    },
  };
  return view;
}

function details(status: SweepStatus): string {
  const { policyVersion, upstream, counted, passed, meanReward, retried } = status;
  const some = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', ') || 'none';
  const flagged = flagsText(status.flags);
  const version = policyVersion === null ? '' : ` at policy version ${policyVersion}`;
  const model = upstream === undefined ? '' : ` of upstream ${upstream.name} (${upstream.model})`;
  return [
    `**${status.phase}**${version}${model}: ${status.ended} of ${status.planned} attempts at ${status.tasks} tasks have ended, ${status.inFlight} in flight`,
    ...(status.pausedBecause === null ? [] : ['', `Paused: ${status.pausedBecause}`]),
    ...(status.endedEarly === null ? [] : ['', `Ends early: ${status.endedEarly}`]),
    '',
    `- passed: ${passed} of ${counted}; mean reward ${meanReward?.toFixed(3) ?? 'none yet'}`,
    `- left out: ${some(status.leftOut)}; retried: ${retried}`,
    ...(flagged === null ? [] : [`- flagged: ${flagged}`]),
  ].join('\n');
}

function found({ passAt1, passAtK, endedEarly }: SweepResult): string {
  if (passAt1 === null) return '- pass@1: nothing was counted';
  const rates = passAtK.map(
    ({ k, mean, low, high }) => `pass@${k} ${mean.toFixed(3)} (95 %: ${low.toFixed(3)} to ${high.toFixed(3)})`,
  );
  const early =
    endedEarly === null ? '' : ', of the attempts that had ended when the sweep did, which are the fast ones';
  return `- ${rates.join('; ')} over ${passAt1.tasks} tasks${early}`;
}
