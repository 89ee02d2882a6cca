import { ScheduleOverlapPolicy, type ScheduleSpec } from '@temporalio/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../../stack/command.ts';
import { UsageError } from '../../text/errors.ts';

/** Options that say when a schedule starts its sweeps. */
export interface ScheduleWhen {
  readonly cron?: string;
  readonly every?: number;
  readonly everySteps?: number;
  readonly run?: string;
  readonly overlap: keyof typeof overlaps;
  readonly catchUp: number;
  readonly jitter?: number;
  readonly timezone?: string;
  readonly paused?: true;
}

/**
 * Policies for a sweep that is due while the previous one runs. Termination is not offered, since it runs no clean-up.
 */
export const overlaps = {
  skip: ScheduleOverlapPolicy.SKIP,
  'buffer-one': ScheduleOverlapPolicy.BUFFER_ONE,
  'buffer-all': ScheduleOverlapPolicy.BUFFER_ALL,
  'cancel-other': ScheduleOverlapPolicy.CANCEL_OTHER,
  'allow-all': ScheduleOverlapPolicy.ALLOW_ALL,
} as const;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** Shortest catch-up window that the server accepts. */
const leastCatchUpMs = 10_000;
const hourMs = 3_600_000;

export function withScheduleOptions(command: Command): Command {
  return command
    .option('--cron <expression>', 'start a sweep at these times, for example "0 3 * * *"')
    .option('--every <duration>', 'or at this interval, for example 6h', duration(unitMs.s))
    .option('--every-steps <n>', 'or every n steps of the run given by --run', wholeNumber(1, 1_000_000))
    .option('--run <id>', 'workflow id of a training run, which may start later')
    .addOption(
      new Option('--overlap <policy>', 'what to do when a sweep is due while the previous one runs')
        .choices(Object.keys(overlaps))
        .default('skip'),
    )
    .addOption(
      new Option('--catch-up <duration>', 'how late a sweep may start that was due while the server was down')
        .argParser(duration(leastCatchUpMs))
        .default(hourMs, '1h'),
    )
    .option('--jitter <duration>', 'maximum random delay of each start', duration(unitMs.s))
    .option('--timezone <name>', 'time zone of --cron, for example Europe/Berlin (default: UTC)')
    .option('--paused', 'create the schedule paused');
}

/** The starts of a schedule's sweeps: at the times of `spec`, or after `steps` of a run. */
export interface ScheduleTimes {
  readonly spec: ScheduleSpec;
  /** The times in words, for lists. */
  readonly text: string;
  readonly steps: { readonly run: string; readonly everySteps: number } | null;
}

/** Reads the times from the options. Throws a UsageError unless they name exactly one kind. */
export function parseScheduleTimes(when: ScheduleWhen): ScheduleTimes {
  const { cron, every, everySteps, run, jitter, timezone } = when;
  const given = [cron, every, everySteps].filter((one) => one !== undefined).length;
  if (given !== 1) throw new UsageError(`expected exactly one of --cron, --every and --every-steps, got ${given}`);
  if ((everySteps === undefined) !== (run === undefined))
    throw new UsageError('--every-steps and --run must be given together');
  if (timezone !== undefined && cron === undefined) throw new UsageError('--timezone needs --cron');
  if (everySteps !== undefined && run !== undefined) {
    if (jitter !== undefined) throw new UsageError('--jitter needs --cron or --every, not --every-steps');
    return {
      spec: {},
      text: everySteps === 1 ? `each step of ${run}` : `every ${everySteps} steps of ${run}`,
      steps: { run, everySteps },
    };
  }
  const shared = { ...(jitter !== undefined && { jitter }), ...(timezone !== undefined && { timezone }) };
  if (every !== undefined)
    return { spec: { intervals: [{ every }], ...shared }, text: `every ${durationText(every)}`, steps: null };
  const text = `cron ${cron}${timezone === undefined ? '' : ` ${timezone}`}`;
  return { spec: { cronExpressions: [cron ?? ''], ...shared }, text, steps: null };
}

function duration(leastMs: number): (value: string) => number {
  return (value) => {
    const [, digits, unit] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
    const ms = Number(digits) * unitMs[unit as keyof typeof unitMs];
    if (ms >= leastMs) return ms;
    throw new InvalidArgumentError(
      `Expected a duration of at least ${leastMs / 1000}s: a number with s, m, h or d, for example 90s or 6h.`,
    );
  };
}

function durationText(ms: number): string {
  const [unit, size] = Object.entries(unitMs).findLast(([, one]) => ms % one === 0) ?? ['s', unitMs.s];
  return `${ms / size}${unit}`;
}
