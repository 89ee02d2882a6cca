import { setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { rootMessage } from '../contracts/error-message.ts';
import { type RegradeInput, type RegradeStatus, regradeStates } from '../contracts/regrade.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import type { RegradeTally } from './tally.ts';

export interface RegradeView {
  phase: RegradeStatus['phase'];
  /** Updates details, search attributes and memo. The last two cost a history event each, so they change once per phase. */
  show(): void;
  /** Shows in the details that the regrade ends with this error. */
  failed(error: unknown): void;
  status(): RegradeStatus;
}

export function createRegradeView({ run }: RegradeInput, tally: RegradeTally): RegradeView {
  let shown = '';
  const view: RegradeView = {
    phase: 'preparing',
    show() {
      const status = view.status();
      setCurrentDetails(details(status));
      if (status.phase === shown) return;
      shown = status.phase;
      upsertSearchAttributes([{ key: searchAttributes.run, value: run ?? status.regrade }]);
      upsertMemo({
        phase: status.phase,
        ended: status.ended,
        planned: status.rollouts,
        startedAt: tally.startedAt,
      });
    },
    failed(error) {
      setCurrentDetails(`**failed** while ${view.phase}: ${rootMessage(error)}\n\n${details(view.status())}`);
    },
    status() {
      const { workflowId: regrade, firstExecutionRunId: regradeKey } = workflowInfo();
      const { states, compared, before, after, cost } = tally.sums;
      return {
        regrade,
        regradeKey,
        states,
        rollouts: tally.rollouts,
        inFlight: tally.inFlight.size,
        phase: view.phase === 'running' && tally.pausedBecause !== null ? 'paused' : view.phase,
        pausedBecause: tally.pausedBecause,
        ended: Object.values(states).reduce((sum, count) => sum + count, 0),
        meanBefore: compared === 0 ? null : before / compared,
        meanAfter: compared === 0 ? null : after / compared,
        endedEarly: tally.endedEarly,
        cost,
      };
    },
  };
  return view;
}

function details(status: RegradeStatus): string {
  const { phase, ended, rollouts, inFlight, pausedBecause, states, meanBefore, meanAfter } = status;
  const counts = regradeStates.flatMap((state) => (states[state] === 0 ? [] : [`${state} ${states[state]}`]));
  const means = `${meanBefore?.toFixed(3) ?? 'none'} → ${meanAfter?.toFixed(3) ?? 'none'}`;
  return [
    `**${phase}**: ${ended} of ${rollouts} rollouts graded again, ${inFlight} in flight`,
    ...(pausedBecause === null ? [] : ['', `Paused: ${pausedBecause}`]),
    '',
    `- ${counts.join(', ') || 'none yet'}`,
    `- mean reward: ${means}`,
  ].join('\n');
}
