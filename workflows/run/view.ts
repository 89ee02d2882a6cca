import { setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { flagsText } from '../algorithms/flags.ts';
import { durationLines, groupDurations } from '../algorithms/group-durations.ts';
import { networkLines } from '../algorithms/network-lines.ts';
import { risingText } from '../algorithms/rising-tricks.ts';
import { waitText } from '../algorithms/staleness.ts';
import { rootMessage } from '../contracts/error-message.ts';
import { fates, outcomes } from '../contracts/outcome.ts';
import type { RunInput, RunStatus } from '../contracts/run.ts';
import { searchAttributes, shownReward, shownText } from '../contracts/search-attributes.ts';
import { shareMemo } from '../contracts/share.ts';
import { usedBy } from './budget.ts';
import type { RunTally } from './run-tally.ts';

export interface RunView {
  phase: RunStatus['phase'];
  cancelling: boolean;
  /** Updates details, search attributes and memo. The last two cost a history event each, so they change once per step or phase. */
  show(): void;
  /** Shows in the details that the run ends with this error. */
  failed(error: unknown): void;
  status(): RunStatus;
}

const pausable: readonly RunStatus['phase'][] = ['preparing', 'running'];

export function createRunView(input: RunInput, tally: RunTally): RunView {
  let shown = '';
  const view: RunView = {
    phase: 'preparing',
    cancelling: false,
    show() {
      const status = view.status();
      setCurrentDetails(details(status));
      const now = `${status.phase} ${status.step}`;
      if (now === shown) return;
      shown = now;
      upsertSearchAttributes([
        { key: searchAttributes.run, value: status.run },
        shownText(searchAttributes.agent, input.settings.agent),
        { key: searchAttributes.step, value: status.step },
        { key: searchAttributes.policyVersion, value: status.policyVersion },
        ...status.recentRewards.slice(-1).map(shownReward),
      ]);
      upsertMemo({
        phase: status.phase,
        step: status.step,
        reward: status.recentRewards.at(-1) ?? null,
        pool: input.pool,
        startedAt: tally.startedAt,
        ...shareMemo(status.runKey, input.weight),
      });
    },
    failed(error) {
      setCurrentDetails(`**failed** while ${view.phase}: ${rootMessage(error)}\n\n${details(view.status())}`);
    },
    status() {
      const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
      const ended = outcomes.reduce((sum, outcome) => sum + tally.rollouts[outcome], 0);
      const settled = fates.reduce((sum, fate) => sum + (fate === 'in-flight' ? 0 : tally.groups[fate]), 0);
      return {
        run,
        runKey,
        phase: pausable.includes(view.phase) && tally.pausedBecause !== null ? 'paused' : view.phase,
        pausedBecause: tally.pausedBecause,
        step: tally.step,
        steps: input.steps,
        updates: tally.updates.made,
        policyVersion: tally.policyVersion,
        skippedSteps: tally.skippedSteps,
        groups: { ...tally.groups, 'in-flight': tally.groupsStarted - settled },
        rollouts: tally.rollouts,
        flags: tally.flagWatch.counts,
        ...(tally.leftOut !== null && { tasksLeftOut: tally.leftOut.tasks }),
        ...(input.settings.offlineTests && { offlineTests: input.settings.offlineTests }),
        rising: tally.flagWatch.rising(ended),
        groupsStarted: tally.groupsStarted,
        rolloutsStarted: tally.groupsStarted * input.rolloutsPerGroup,
        inFlight: [...tally.inFlight.keys()],
        waitsFor: tally.waitsFor,
        recentRewards: tally.recentRewards,
        durations: groupDurations(tally.recentGroups.settled),
        startedAt: tally.startedAt,
        cost: tally.cost,
        budget: { limits: tally.budget, used: usedBy(input, tally) },
      };
    },
  };
  return view;
}

function details(status: RunStatus): string {
  const counts = (record: Readonly<Record<string, number>>): string =>
    Object.entries(record)
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', ') || 'none yet';
  const flagged = flagsText(status.flags);
  return [
    `**${status.phase}**, step ${status.step} of ${status.steps}, ${status.updates} updates, policy version ${status.policyVersion}`,
    ...(status.pausedBecause === null ? [] : ['', `Paused: ${status.pausedBecause}`]),
    '',
    `- mean reward, step by step: ${rewardText(status.recentRewards)}`,
    `- groups: ${counts(status.groups)}`,
    `- rollouts: ${counts(status.rollouts)}`,
    ...durationLines(status.durations).map((line) => `- ${line}`),
    ...(status.waitsFor.length === 0 ? [] : [`- ${waitText(status)}`]),
    ...(status.skippedSteps.length === 0 ? [] : [`- skipped steps: ${status.skippedSteps.join(', ')}`]),
    ...(flagged === null ? [] : [`- flagged: ${flagged}`]),
    ...networkLines(status).map((line) => `- ${line}`),
    ...status.rising.map((rising) => `- warning: ${risingText(rising)}`),
  ].join('\n');
}

const bars = '▁▂▃▄▅▆▇█';

/** Formats the first and the last mean reward, with a small chart from 0 to 1 between them. */
function rewardText(rewards: readonly number[]): string {
  const [first] = rewards;
  const last = rewards.at(-1);
  if (first === undefined || last === undefined) return 'none yet';
  const chart = rewards.map((reward) => bars[Math.min(7, Math.max(0, Math.floor(reward * 8)))]).join('');
  return `${first.toFixed(2)} ${chart} ${last.toFixed(2)}`;
}
