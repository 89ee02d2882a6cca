import { type Costs, moneyOf } from '../../../../infra/report/cost-table.ts';
import { groupFates, type TaskFates } from '../../../../infra/report/group-fates.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readPrices } from '../../../../infra/report/prices.ts';
import { readRunRecords, settledFates } from '../../../../infra/report/run-records.ts';
import { flagsText } from '../../../../workflows/algorithms/flags.ts';
import { durationLines } from '../../../../workflows/algorithms/group-durations.ts';
import { networkLines } from '../../../../workflows/algorithms/network-lines.ts';
import { risingText } from '../../../../workflows/algorithms/rising-tricks.ts';
import { waitText } from '../../../../workflows/algorithms/staleness.ts';
import { type RunInput, type RunStatus, runInput } from '../../../../workflows/contracts/run.ts';
import { type KnownWorkflow, startOf } from '../../follow/find-known.ts';
import { readRunState } from '../../follow/run-state.ts';
import { setName } from '../../stack/set-name.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';
import { budgetText } from '../../text/budget.ts';
import { costText } from '../../text/cost.ts';
import { counted, print, printJson, table } from '../../text/output.ts';
import { stepText } from '../train/progress-text.ts';

/** The largest number of tasks in the text, to keep it short. */
const shownTasks = 10;

/** Shows a run: its progress, or how it ended, and all finished steps. */
export async function showRun(stack: ReadableStack, known: KnownWorkflow, json: boolean): Promise<void> {
  const { id, key } = known;
  const { status, end, workflowStatus } = await readRunState(stack, known);
  // A refused run never began, so that it answers no query.
  if (end?.kind === 'refused') {
    if (json) return printJson({ id, ...end });
    return print(`${id}\n${end.kind}: ${end.message}`);
  }
  const records = await readRunRecords(stack.records, key);
  const { steps } = records;
  const start = await startOf(stack, known);
  const input = runInput.parse(start.input);
  const costs = status === null ? null : await costsOf(stack, input, status);
  const byTask = groupFates(records.groups, settledFates(records));
  if (json) {
    const money = costs && moneyOf(costs);
    const known = status ?? { run: id, runKey: key };
    return printJson({ ...known, money, workflowStatus, end, stepRecords: steps, groupFates: byTask });
  }
  const ended = end?.kind !== 'failed' ? '' : `\n${end.kind}: ${end.message}`;
  const shown =
    status === null || costs === null
      ? 'it still runs or was terminated: the store holds its steps and groups, and no end'
      : `${statusText(status)}\n\n${tasksText(byTask.tasks)}${costText(costs)}`;
  const tasks = showHidden(await setName(stack, input.tasks));
  print(`${id} (${workflowStatus?.toLowerCase() ?? 'no end recorded'})${ended}\ntasks: ${tasks}\n${shown}\n`);
  let since = start.startedAt;
  for (const step of steps) {
    print(stepText(step, input.steps, (step.recordedAt - since) / 1000));
    since = step.recordedAt;
  }
}

/** The cost of a run. */
async function costsOf(stack: ReadableStack, { pool }: RunInput, { cost }: RunStatus): Promise<Costs> {
  return { ...cost, sampler: { pool }, prices: await readPrices(stack.config.prices) };
}

function statusText(status: RunStatus): string {
  const flagged = flagsText(status.flags);
  return [
    `${status.phase}, step ${status.step} of ${status.steps}, ${counted(status.updates, 'update')}, policy version ${status.policyVersion}`,
    ...(status.pausedBecause === null ? [] : [`paused: ${status.pausedBecause}`]),
    `groups: ${counts(status.groups)} (${status.groupsStarted} started)`,
    `rollouts: ${counts(status.rollouts)} (${status.rolloutsStarted} started)`,
    ...durationLines(status.durations),
    ...(status.skippedSteps.length === 0 ? [] : [`skipped steps: ${status.skippedSteps.join(', ')}`]),
    ...(flagged === null ? [] : [`flagged: ${flagged}`]),
    ...networkLines(status),
    ...status.rising.map((rising) => `warning: ${risingText(rising)}`),
    ...(status.waitsFor.length === 0 ? [] : [waitText(status)]),
    ...(status.inFlight.length === 0 ? [] : [`in flight: group ${status.inFlight.join(', ')}`]),
    ...(Object.keys(status.budget.limits).length === 0 ? [] : ['', budgetText(status.budget)]),
  ].join('\n');
}

/** Formats what became of the groups task by task, those of the tasks that take longest first. */
function tasksText(tasks: readonly TaskFates[]): string {
  if (tasks.length === 0) return '';
  const rows = tasks
    .slice(0, shownTasks)
    .map(({ task, seconds, groups, fates, meanReward }) => [
      task,
      seconds.toFixed(1),
      String(groups),
      counts(fates),
      meanReward?.toFixed(2) ?? '-',
    ]);
  const rest = tasks.length - rows.length;
  const more = rest === 0 ? '' : `… and ${counted(rest, 'task')} that took less; --json prints all\n`;
  return `${table(['task', 'mean seconds', 'groups', 'fates', 'mean reward'], rows)}\n${more}\n`;
}

function counts(record: Readonly<Record<string, number>>): string {
  const some = Object.entries(record).filter(([, count]) => count > 0);
  return some.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none yet';
}
