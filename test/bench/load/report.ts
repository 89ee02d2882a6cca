import { seconds, table } from '../../../workers/cli/text/output.ts';
import type { LoadFigures } from './figures.ts';

/** Formats the figures of all cells as tables: one of cells, one of processes, one of what the control worker keeps. */
export function reportText(cells: readonly LoadFigures[]): string {
  const parts = [loadTable(cells), failureLines(cells), processTable(cells), serverTable(cells)];
  return parts.filter(Boolean).join('\n\n');
}

const listed = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ') || '0';

function loadTable(cells: readonly LoadFigures[]): string {
  const head = [
    'agents',
    'at work',
    'after',
    'drained in',
    'drain/s',
    'whole/s',
    '4 at once/s',
    'tried again',
    'outcomes',
  ];
  const rows = cells.map((cell) => [
    String(cell.agents),
    cell.limitedBy === null ? String(cell.asleep) : `${cell.asleep} (${cell.limitedBy})`,
    seconds(cell.untilAtWorkSec),
    seconds(cell.drainSec),
    `${cell.drainRate.toFixed(1)} (${percent(cell.drainRate / cell.fourRate)})`,
    `${cell.wholeRate.toFixed(1)} (${percent(cell.wholeRate / cell.fourRate)})`,
    cell.fourRate.toFixed(1),
    listed(cell.again),
    `${listed(cell.outcomes)}${cell.restarts === 0 ? '' : `, ${cell.restarts} restarts`}`,
  ]);
  const [{ sandbox, lanes, evaluations } = { sandbox: '', lanes: 0, evaluations: 0 }] = cells;
  const title = `Agents in ${sandbox} sandboxes that end together; ${lanes} lanes, ${evaluations} evaluations at once`;
  return `${title}\n\n${table(head, rows)}`;
}

/** Lists why stages were tried again; empty if none was. */
const failureLines = (cells: readonly LoadFigures[]): string =>
  cells
    .flatMap(({ agents, againBecause }) =>
      Object.entries(againBecause).map(([why, count]) => `${agents} agents: ${count} tried again: ${why}`),
    )
    .join('\n');

function processTable(cells: readonly LoadFigures[]): string {
  const head = ['agents', 'process', 'idle MB', 'peak MB', 'CPU ms', '% of a core asleep'];
  const rows = cells.flatMap((cell) =>
    cell.processes.map((one) => [
      String(cell.agents),
      one.name,
      one.idleMb.toFixed(0),
      one.peakMb.toFixed(0),
      one.cpuMsPerRollout.toFixed(1),
      one.asleepCpuPercent.toFixed(1),
    ]),
  );
  return `Memory by proportional shares, and CPU time per rollout\n\n${table(head, rows)}`;
}

function serverTable(cells: readonly LoadFigures[]): string {
  const head = ['agents', 'writes/rollout', 'starting/s', 'asleep/s', 'draining/s', 'cached', 'MB each', 'misses'];
  const rows = cells.map(({ agents, writes, cached }) => [
    String(agents),
    writes.perRollout.toFixed(0),
    writes.whileStarting.toFixed(0),
    writes.whileAsleep.toFixed(1),
    writes.whileDraining.toFixed(0),
    String(cached.workflows),
    cached.mbEach.toFixed(2),
    String(cached.misses),
  ]);
  return `Writes of the Temporal server, and workflows in the memory of the control worker\n\n${table(head, rows)}`;
}

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
