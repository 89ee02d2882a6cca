import { lackText } from '../../../../infra/egress/grant-network.ts';
import type { LackingTask } from '../../../../infra/tasks/lacking-network.ts';
import { meanOf } from '../../../../workflows/algorithms/mean.ts';
import { outcomes } from '../../../../workflows/contracts/outcome.ts';
import { counted, mostRows, seconds, table } from '../../text/output.ts';
import type { RolloutRow } from './rollout-row.ts';

/** Formats all rollouts of a command as a table, with totals below, and the tasks that it left out. */
export function rolloutTable(
  rows: readonly RolloutRow[],
  lacking: readonly LackingTask[],
  wallSeconds: number,
): string {
  const body = rows.map((row) => [
    row.task,
    row.outcome ?? 'none',
    row.reward === null ? '-' : row.reward.toFixed(2),
    row.stop ?? '-',
    stage(row, 'provisionSandbox'),
    stage(row, 'awaitAgent'),
    stage(row, 'evaluate'),
    total(row),
  ]);
  const head = ['task', 'outcome', 'reward', 'stop', 'provision', 'agent', 'evaluate', 'seconds'];
  return [table(head, body), '', totals(rows, wallSeconds), ...offlineLines(rows), ...leftOutLines(lacking)].join('\n');
}

const offlineLines = (rows: readonly RolloutRow[]): readonly string[] =>
  rows.some(({ offlineTests }) => offlineTests) ? ['all tests ran without a network, also those that need one'] : [];

/** Counts the tasks that were left out, with the reason of each. */
function leftOutLines(lacking: readonly LackingTask[]): readonly string[] {
  if (lacking.length === 0) return [];
  const shown = lacking.slice(0, mostRows).map(({ id, lack }) => `  ${id}${lackText(lack)}`);
  const more = lacking.length - shown.length;
  return [
    `left out, because they lack a network: ${counted(lacking.length, 'task')}`,
    ...shown,
    ...(more === 0 ? [] : [`  and ${more} more`]),
  ];
}

function totals(rows: readonly RolloutRow[], wallSeconds: number): string {
  const counts = outcomes.flatMap((outcome) => {
    const count = rows.filter((row) => row.outcome === outcome).length;
    return count === 0 ? [] : [`${outcome} ${count}`];
  });
  const rewards = rows.flatMap(({ reward }) => reward ?? []);
  const mean = rewards.length === 0 ? '' : `, mean reward ${meanOf(rewards).toFixed(3)}`;
  return `${counted(rows.length, 'rollout')}: ${counts.join(', ') || 'none ended'}${mean}, ${seconds(wallSeconds)}`;
}

const stage = ({ stageSeconds }: RolloutRow, name: 'provisionSandbox' | 'awaitAgent' | 'evaluate'): string =>
  stageSeconds[name]?.toFixed(2) ?? '-';

const total = ({ stageSeconds }: RolloutRow): string =>
  Object.values(stageSeconds)
    .reduce((sum, value) => sum + (value ?? 0), 0)
    .toFixed(2);
