import { seconds, table } from '../../../workers/cli/text/output.ts';
import type { FleetFigures } from './figures.ts';

/** Formats the figures of a fleet as tables: one of phases, one of processes. */
export function fleetReport(figures: FleetFigures): string {
  const { started, asleep, waiting, limitedBy, ended, scored, placed } = figures;
  const limit = limitedBy === null ? '' : ` (of ${figures.asked.asleep}: ${limitedBy})`;
  const phases = figures.phases.map(({ name, seconds: length, transitions, writes }) => [
    name,
    seconds(length),
    transitions.toFixed(1),
    writes.toFixed(1),
  ]);
  const processes = figures.processes.map((one) => [
    one.name,
    one.idleMb.toFixed(0),
    one.peakMb.toFixed(0),
    one.startCpuMs.toFixed(1),
    one.turnCpuMs.toFixed(1),
    one.waitingCpuPercent.toFixed(1),
  ]);
  const turn = figures.phases.at(-1)?.seconds ?? 0;
  return [
    `${started} rollouts started: ${asleep} agents sleep${limit}, ${waiting} rollouts wait`,
    table(['phase', 'for', 'state transitions/s', 'writes/s'], phases),
    'Memory by proportional shares, CPU time per rollout, and percent of a core while all sleep or wait',
    table(['process', 'idle MB', 'peak MB', 'CPU ms to start', 'CPU ms to end', '% asleep'], processes),
    `${ended} rollouts ended, ${scored} of them scored, and as many took their places in ${seconds(turn)}.`,
    `Those that ended had been placed after ${seconds(placed.medianSec)} (median), ${seconds(placed.mostSec)} at most.`,
  ].join('\n\n');
}
