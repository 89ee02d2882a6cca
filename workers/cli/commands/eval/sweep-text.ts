import { flagsText } from '../../../../workflows/algorithms/flags.ts';
import type { Estimate, FlaggedRollout, SweepReport, TaskScore } from '../../../../workflows/contracts/sweep.ts';
import { counted, mostRows, seconds, table } from '../../text/output.ts';

/** Formats the report of a sweep. */
export function sweepText(report: SweepReport): string {
  const { sweep, input, run, result, taskScores, leftOut, flagged, quarantined, lacking } = report;
  const { passAt1, reward, passAtK, endedEarly, cost } = result;
  const evaluated = evaluatedText({ run, result });
  const by = evaluated === null ? '' : `, ${evaluated}`;
  const left = Object.entries(result.leftOut).flatMap(([why, count]) => (count === 0 ? [] : [`${why} ${count}`]));
  const tasksLeft = Object.entries(result.tasksLeftOut).flatMap(([why, tasks]) =>
    tasks === 0 ? [] : [`${counted(tasks, 'task')} (${why})`],
  );
  const flags = flagsText(result.flags);
  const planned = result.tasks * result.attempts;
  const facts = [
    ...(passAt1 === null ? [['pass@1', 'no attempt was counted']] : []),
    ...passAtK.map((estimate) => [`pass@${estimate.k}`, estimateText(estimate, result)]),
    ...missingText(result),
    ...(reward === null ? [] : [['mean reward', estimateText(reward, result)]]),
    ...(endedEarly === null
      ? []
      : [['ended early', `${endedEarly}; only the attempts that had ended count, which are the fast ones`]]),
    ['counted', `${result.counted} of ${planned} attempts${left.length === 0 ? '' : `; left out: ${left.join(', ')}`}`],
    ...(result.unscored === 0
      ? []
      : [
          [
            'unscored',
            `${counted(result.unscored, 'attempt')} that ended in a way that the settings do not score: failures`,
          ],
        ]),
    ...(result.retried === 0 ? [] : [['retried', `${counted(result.retried, 'rollout')} lost to infrastructure`]]),
    ...(tasksLeft.length === 0 ? [] : [['not attempted', tasksLeft.join(', ')]]),
    ...(flags === null ? [] : [['flagged', flags]]),
    ['tokens', `${count(cost.sampledTokens)} sampled in ${count(cost.turns)} turns, ${count(cost.promptTokens)} sent`],
    [
      'time',
      `${seconds(cost.wallSeconds)}; ${counted(cost.rollouts, 'rollout')} ${seconds(cost.rolloutSeconds)}, in sandboxes ${seconds(cost.sandboxSeconds)}`,
    ],
  ];
  return [
    `${sweep}: ${counted(result.tasks, 'task')} of ${input.tasks}, ${counted(result.attempts, 'attempt')} each, ${agentText(report)}${by}`,
    factLines(facts),
    taskTable(taskScores),
    ...(flagged.length === 0 ? [] : [`flagged as suspected tricks; review them:\n${flaggedTable(flagged)}`]),
    ...(leftOut.length === 0 ? [] : [`left out of all rates:\n${leftOutTable(leftOut)}`]),
    ...(quarantined.length === 0
      ? []
      : [`quarantined and not attempted:\n${quarantined.slice(0, mostRows).join('\n')}`]),
    ...(lacking.length === 0 ? [] : [`lack a network and were not attempted:\n${lackingLines(lacking)}`]),
  ].join('\n\n');
}

/** Formats pairs of a name and a text, one a line. */
export function factLines(facts: readonly (readonly string[])[]): string {
  const width = Math.max(...facts.map(([name = '']) => name.length));
  return facts.map(([name = '', text = '']) => `${name.padEnd(width)}  ${text}`).join('\n');
}

function taskTable(scores: readonly TaskScore[]): string {
  const rows = scores
    .slice(0, mostRows)
    .map(({ task, counted, passed, meanReward, leftOut, turns, sampledTokens, seconds: spent }) => [
      task,
      `${passed} of ${counted}`,
      meanReward?.toFixed(2) ?? '-',
      String(leftOut),
      String(turns),
      String(sampledTokens),
      spent.toFixed(1),
    ]);
  const text = table(['task', 'passed', 'reward', 'left out', 'turns', 'tokens', 'seconds'], rows);
  return scores.length > mostRows ? `${text}\n… and ${scores.length - mostRows} more; --json prints all` : text;
}

function flaggedTable(rollouts: readonly FlaggedRollout[]): string {
  const rows = rollouts
    .slice(0, mostRows)
    .map(({ taskId, reward, workflowId, flags }) => [taskId, reward?.toFixed(2) ?? '-', workflowId, flags.join(', ')]);
  return table(['task', 'reward', 'rollout', 'flags'], rows);
}

function leftOutTable(rows: SweepReport['leftOut']): string {
  const shown = rows.slice(0, mostRows).map(({ workflowId, taskId, why, failure, versions }) => {
    const reason =
      failure === null
        ? versions === null
          ? ''
          : `sampled by versions ${[...new Set(versions)].join(', ')}`
        : `${failure.type}: ${failure.message}`;
    return [taskId, why, workflowId, reason];
  });
  return table(['task', 'why', 'rollout', 'reason'], shown);
}

const lackingLines = (lacking: SweepReport['lacking']): string =>
  lacking
    .slice(0, mostRows)
    .map(({ address, why }) => `${address}  ${why}`)
    .join('\n');

/** Names the agent of a sweep, with its options, and says if its tests had no network. */
export function agentText({ input }: Pick<SweepReport, 'input'>): string {
  const { agent, agentOptions = {}, offlineTests } = input.settings;
  const named = Object.keys(agentOptions).length === 0 ? agent : `${agent} ${JSON.stringify(agentOptions)}`;
  return offlineTests ? `${named} (tests without a network)` : named;
}

/** Names what a sweep evaluated; null if its agent calls no model. */
export function evaluatedText({ run, result }: Pick<SweepReport, 'run' | 'result'>): string | null {
  const { policyVersion, upstream } = result;
  if (upstream !== undefined) return `upstream ${upstream.name} (${upstream.model})`;
  return policyVersion === null ? null : `policy version ${policyVersion}${run === null ? '' : ` of ${run}`}`;
}

/** Says that the largest pass@k is unknown, because a task has too few counted attempts. */
function missingText({ attempts, passAtK }: SweepReport['result']): readonly string[][] {
  const most = passAtK.at(-1)?.k ?? attempts;
  return most === attempts
    ? []
    : [[`pass@${attempts}`, `unknown: a task has only ${counted(most, 'counted attempt')}`]];
}

function estimateText(estimate: Estimate, { endedEarly }: SweepReport['result']): string {
  const { mean, low, high, tasks } = estimate;
  const early = endedEarly === null ? '' : '; ended early';
  return `${mean.toFixed(3)}  (95 %: ${low.toFixed(3)} to ${high.toFixed(3)}, ${counted(tasks, 'task')}${early})`;
}

const count = (value: number): string => value.toLocaleString('en');
