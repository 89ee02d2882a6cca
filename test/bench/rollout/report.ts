import type { Cost } from '../measure.ts';
import type { StageCpu } from './cpu-by-stage.ts';
import type { StageCalls } from './docker-calls.ts';
import { emptyActivities } from './floor.ts';
import type { MeasuredProcess } from './processes.ts';

export interface WholeCost extends Cost {
  /** CPU time of each process in ms per rollout. */
  readonly processes: readonly (MeasuredProcess & { readonly cpuMs: number })[];
  /** CPU time of a workflow of nine empty activities, the server's and its worker's, in ms. */
  readonly floorMs: number;
  /** The processes' CPU time by stage, of rollouts that ran alone. */
  readonly stages: readonly StageCpu[];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

export function printCosts(title: string, bare: Cost, whole: WholeCost): void {
  const row = (name: string, cost: Cost): string =>
    `${name.padEnd(24)} ${(1000 / cost.wallMs).toFixed(2).padStart(10)} ${cost.wallMs.toFixed(0).padStart(10)} ${cost.cpuMs.toFixed(0).padStart(10)}`;
  const own = sum(whole.processes.filter((one) => one.of === 'itself').map((one) => one.cpuMs));
  console.log(title);
  console.log(`${''.padEnd(24)} ${'per second'.padStart(10)} ${'wall ms'.padStart(10)} ${'CPU ms'.padStart(10)}`);
  console.log(row('bare sandbox operations', bare));
  console.log(row('whole pipeline', whole));
  for (const { name, cpuMs } of whole.processes) console.log(`  ${name.padEnd(44)} ${cpuMs.toFixed(0).padStart(10)}`);
  console.log(
    `temper's own processes and the Temporal server: ${own.toFixed(0)} ms CPU per rollout, without their commands; ` +
      `${(whole.wallMs / bare.wallMs).toFixed(2)} × the bare wall time`,
  );
  console.log(
    `a workflow of ${emptyActivities} empty activities: ${whole.floorMs.toFixed(0)} ms CPU, Temporal server included`,
  );
  console.log(
    `all that the machine did beyond the bare operations: ${(whole.cpuMs - bare.cpuMs).toFixed(0)} ms CPU per rollout`,
  );
}

export function printStages({ processes, stages }: WholeCost): void {
  if (stages.length === 0) return;
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(24), ...cells.map((cell) => cell.padStart(9))].join(' ');
  const figures = (wallMs: number, cpuMs: readonly number[]): string[] =>
    [wallMs, sum(cpuMs.filter((_, at) => processes[at]?.of === 'itself')), ...cpuMs].map((ms) => ms.toFixed(1));
  console.log(`\n${row('one rollout at a time', ['wall ms', 'own CPU', ...processes.map(({ name }) => name)])}`);
  for (const { stage, wallMs, cpuMs } of stages) console.log(row(stage, figures(wallMs, cpuMs)));
  const wallMs = sum(stages.map((stage) => stage.wallMs));
  console.log(
    row(
      'all',
      figures(
        wallMs,
        processes.map((_, at) => sum(stages.map(({ cpuMs }) => cpuMs[at] ?? 0))),
      ),
    ),
  );
}

export function printCalls(stages: readonly StageCalls[]): void {
  const row = (stage: string, calls: string | number, execs: string | number, each = ''): string =>
    `${stage.padEnd(24)} ${String(calls).padStart(10)} ${String(execs).padStart(10)}  ${each}`;
  const total = (key: 'calls' | 'execs'): number => sum(stages.map((stage) => stage[key]));
  console.log(`\n${row('Docker API of a rollout', 'calls', 'commands')}`);
  for (const { stage, calls, execs, byCall } of stages) {
    const names = Object.entries(byCall).map(([what, count]) => `${count} ${what}`);
    console.log(row(stage, calls, execs, names.join(', ')));
  }
  console.log(row('all', total('calls'), total('execs')));
}
