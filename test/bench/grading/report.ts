import { table } from '../../../workers/cli/text/output.ts';
import { type CycleFigures, phases } from './cycle.ts';
import type { EvaluationFigures } from './evaluations.ts';
import type { ParserSpeed } from './parsers.ts';
import type { SnapshotFigures } from './snapshots.ts';
import type { WayFigures } from './ways.ts';

export interface GradingFigures {
  readonly cores: number;
  readonly sandbox: string;
  readonly tasks: string;
  readonly evaluations: EvaluationFigures;
  /** Null if there are no bare calls to compare with. */
  readonly cycle: CycleFigures | null;
  readonly ways: readonly WayFigures[];
  /** Empty if the kind of sandbox carries no changes. */
  readonly snapshots: readonly SnapshotFigures[];
  readonly parsers: readonly ParserSpeed[];
}

export interface Aim {
  readonly what: string;
  readonly measured: string;
  readonly aim: string;
  readonly met: boolean;
}

const leastShare = 0.7;
const mostRatio = 1.2;

export function aimsOf({ evaluations, cycle }: Pick<GradingFigures, 'evaluations' | 'cycle'>): readonly Aim[] {
  const { shareInTests } = evaluations;
  return [
    {
      what: 'share of an evaluation in its tests',
      measured: `${(shareInTests * 100).toFixed(0)} %`,
      aim: `≥ ${leastShare * 100} %`,
      met: shareInTests >= leastShare,
    },
    ...(cycle === null
      ? []
      : [
          {
            what: "a sandbox's cycle beside bare calls",
            measured: `${cycle.ratio.toFixed(2)} ×`,
            aim: `≤ ${mostRatio} ×`,
            met: cycle.ratio <= mostRatio,
          },
        ]),
  ];
}

/** Formats the tables, with the aims last. */
export function reportText(figures: GradingFigures): string {
  const { cores, sandbox, tasks, evaluations, cycle, ways, snapshots, parsers } = figures;
  const { perMinute, concurrency, cpuMs } = evaluations;
  const per = `${perMinute.toFixed(0)} evaluations per minute`;
  return [
    `${per} of ${tasks}, in ${sandbox} sandboxes, ${concurrency} at once on ${cores} cores; ${cpuMs.toFixed(0)} ms CPU each, on the whole machine`,
    spentTable(evaluations),
    ...(cycle === null ? [] : [cycleTable(cycle)]),
    waysTable(ways),
    ...(snapshots.length === 0 ? [] : [snapshotTable(snapshots)]),
    table(
      ['parser', 'MB/s'],
      parsers.map(({ parser, mbPerSecond }) => [parser, mbPerSecond.toFixed(0)]),
    ),
    table(
      ['', 'measured', 'aim', ''],
      aimsOf(figures).map(({ what, measured, aim, met }) => [what, measured, aim, met ? 'met' : 'missed']),
    ),
  ].join('\n\n');
}

function waysTable(ways: readonly WayFigures[]): string {
  return table(
    ['medians, one at a time', 'captured in ms', 'graded in ms', 'both in ms'],
    ways.map(({ way, captureMs, gradeMs }) => [
      way,
      ...[captureMs, gradeMs, captureMs + gradeMs].map((ms) => ms.toFixed(0)),
    ]),
  );
}

function snapshotTable(snapshots: readonly SnapshotFigures[]): string {
  return table(
    ['MB changed', 'MB stored', 'kept in s', 'written in s', 'memory in MB', 'docker commit in s'],
    snapshots.map(({ changedMb, storedMb, keepSec, writeSec, memoryMb, commitSec }) => [
      String(changedMb),
      storedMb.toFixed(0),
      keepSec.toFixed(1),
      writeSec.toFixed(1),
      memoryMb.toFixed(0),
      commitSec?.toFixed(1) ?? '',
    ]),
  );
}

function spentTable({ spentMs, wallMs }: EvaluationFigures): string {
  const others = wallMs - Object.values(spentMs).reduce((sum, ms) => sum + ms, 0);
  const row = (name: string, ms: number): readonly string[] => [name, ms.toFixed(0), ((ms / wallMs) * 100).toFixed(0)];
  const rows = Object.entries(spentMs).sort(([, one], [, other]) => other - one);
  return table(
    ['of one evaluation', 'ms', '%'],
    [...rows.map(([name, ms]) => row(name, ms)), row("temper's own process", others), row('all', wallMs)],
  );
}

function cycleTable({ sandbox, bare, cycles }: CycleFigures): string {
  const row = (phase: keyof typeof sandbox): readonly string[] => [
    phase,
    sandbox[phase].toFixed(0),
    bare[phase].toFixed(0),
    (sandbox[phase] / bare[phase]).toFixed(2),
  ];
  return table([`median of ${cycles} cycles`, 'sandbox, ms', 'bare, ms', '×'], [...phases, 'all' as const].map(row));
}
