import { setCurrentDetails, upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { flagsText } from '../algorithms/flags.ts';
import { fates } from '../contracts/outcome.ts';
import type { RunInput, RunStatus } from '../contracts/run.ts';
import { searchAttributes, shownReward } from '../contracts/search-attributes.ts';
import { rootMessage } from './root-message.ts';
import type { Ledger } from './tally.ts';

export interface RunView {
  phase: RunStatus['phase'];
  cancelling: boolean;
  /** Brings details, search attributes and memo up to date; the costly ones (a history event each) once per step or phase. */
  show(): void;
  /** The run ends by this error: the details must not go on saying that it runs. */
  failed(error: unknown): void;
  status(): RunStatus;
}

export function createRunView(input: RunInput, ledger: Ledger): RunView {
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
        { key: searchAttributes.agent, value: input.settings.agent },
        { key: searchAttributes.step, value: status.step },
        { key: searchAttributes.policyVersion, value: status.policyVersion },
        ...status.recentRewards.slice(-1).map(shownReward),
      ]);
      upsertMemo({ phase: status.phase, step: status.step, reward: status.recentRewards.at(-1) ?? null });
    },
    failed(error) {
      setCurrentDetails(`**failed** while ${view.phase}: ${rootMessage(error)}\n\n${details(view.status())}`);
    },
    status() {
      const { workflowId: run, firstExecutionRunId: runKey } = workflowInfo();
      const settled = fates.reduce((sum, fate) => sum + (fate === 'in-flight' ? 0 : ledger.groups[fate]), 0);
      return {
        run,
        runKey,
        phase: view.phase === 'running' && ledger.pausedBecause !== null ? 'paused' : view.phase,
        pausedBecause: ledger.pausedBecause,
        step: ledger.step,
        steps: input.steps,
        policyVersion: ledger.policyVersion,
        groups: { ...ledger.groups, 'in-flight': ledger.groupsStarted - settled },
        rollouts: ledger.rollouts,
        flags: ledger.flags,
        groupsStarted: ledger.groupsStarted,
        rolloutsStarted: ledger.groupsStarted * input.rolloutsPerGroup,
        inFlight: [...ledger.inFlight.keys()],
        recentRewards: ledger.recentRewards,
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
    `**${status.phase}**, step ${status.step} of ${status.steps}, policy version ${status.policyVersion}`,
    ...(status.pausedBecause === null ? [] : ['', `Paused: ${status.pausedBecause}`]),
    '',
    `- mean reward, step by step: ${rewardText(status.recentRewards)}`,
    `- groups: ${counts(status.groups)}`,
    `- rollouts: ${counts(status.rollouts)}`,
    ...(flagged === null ? [] : [`- flagged: ${flagged}`]),
  ].join('\n');
}

const bars = '▁▂▃▄▅▆▇█';

/** From the first to the last of the steps that are kept, with a small chart between 0 and 1. */
function rewardText(rewards: readonly number[]): string {
  const [first] = rewards;
  const last = rewards.at(-1);
  if (first === undefined || last === undefined) return 'none yet';
  const chart = rewards.map((reward) => bars[Math.min(7, Math.max(0, Math.floor(reward * 8)))]).join('');
  return `${first.toFixed(2)} ${chart} ${last.toFixed(2)}`;
}
