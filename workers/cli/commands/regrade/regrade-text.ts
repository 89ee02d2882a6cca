import {
  type RegradeReport,
  type RegradeRow,
  type RegradeState,
  regradeStates,
} from '../../../../workflows/contracts/regrade.ts';
import { counted, mostRows, seconds, table } from '../../text/output.ts';

/** Formats the report of a regrade. Rollouts with an unchanged reward are counted, not listed. */
export function regradeText({ regrade, startedAt, endedAt, result, rows }: RegradeReport): string {
  const { rollouts, states, meanBefore, meanAfter, endedEarly } = result;
  const means = meanBefore === null ? 'none' : `${meanBefore.toFixed(3)} → ${meanAfter?.toFixed(3) ?? 'none'}`;
  return [
    `${regrade}: ${counted(rollouts, 'rollout')}, ${seconds((endedAt - startedAt) / 1000)}: ${statesText(states).join(', ') || 'none'}`,
    ...(endedEarly === null ? [] : [`ended early: ${endedEarly}`]),
    `mean reward  ${means}`,
    ...repairedText(rows),
    ...block('changed', rows, ['rollout', 'task', 'before', 'after', 'verdict'], changed),
    ...block('unstable', rows, ['rollout', 'task', 'before', 'evaluations of the same diff'], unstable),
    ...block('failed', rows, ['rollout', 'task', 'failure'], ({ failure }) => [
      failure === null ? '-' : `${failure.type}: ${failure.message}`,
    ]),
    ...block('left-out', rows, ['rollout', 'task', 'why'], ({ why }) => [why ?? '-']),
  ].join('\n\n');
}

/** Counts the rollouts that were graded by a changed version of their task. */
function repairedText(rows: readonly RegradeRow[]): readonly string[] {
  const graded = rows.flatMap(({ bundles }) => bundles ?? []);
  if (graded.length === 0) return [];
  const changed = graded.filter(({ before, after }) => before !== after);
  const tasks = new Set(changed.map(({ before }) => before)).size;
  return [
    `repaired     ${changed.length} of ${graded.length} rollouts were graded by a changed version of their task (${counted(tasks, 'task')})`,
  ];
}

export const statesText = (states: Readonly<Record<RegradeState, number>>): readonly string[] =>
  regradeStates.flatMap((state) => (states[state] === 0 ? [] : [`${state} ${states[state]}`]));

function block(
  state: RegradeState,
  all: readonly RegradeRow[],
  head: readonly string[],
  cells: (row: RegradeRow) => readonly string[],
): readonly string[] {
  const rows = all.filter((row) => row.state === state);
  if (rows.length === 0) return [];
  const shown = rows.slice(0, mostRows).map((row) => [row.rollout, row.task, ...cells(row)]);
  const more = rows.length > mostRows ? `\n… and ${rows.length - mostRows} more; --json prints all` : '';
  return [`${state}:\n${table(head, shown)}${more}`];
}

function changed({ before, after, kindBefore, evaluations }: RegradeRow): readonly string[] {
  const [now] = evaluations;
  const kind = `${now?.kind ?? 'none'}${now?.cached === true ? ' (cached)' : ''}`;
  return [rewardText(before), rewardText(after), `${kindBefore ?? 'none'} → ${kind}`];
}

function unstable({ before, evaluations }: RegradeRow): readonly string[] {
  const said = evaluations.map(({ reward, kind, log }) => `${rewardText(reward)} ${kind} (log ${log.slice(0, 12)})`);
  return [rewardText(before), said.join(', ')];
}

const rewardText = (reward: number | null): string => reward?.toFixed(2) ?? '-';
