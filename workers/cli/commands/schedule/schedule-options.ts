import { ScheduleOverlapPolicy, type ScheduleSpec } from '@temporalio/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../../stack/command.ts';
import { UsageError } from '../../text/errors.ts';

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

/** What happens when a sweep is due while the last one runs. Terminating it is none of them: that runs no clean-up. */
export const overlaps = {
  skip: ScheduleOverlapPolicy.SKIP,
  'buffer-one': ScheduleOverlapPolicy.BUFFER_ONE,
  'buffer-all': ScheduleOverlapPolicy.BUFFER_ALL,
  'cancel-other': ScheduleOverlapPolicy.CANCEL_OTHER,
  'allow-all': ScheduleOverlapPolicy.ALLOW_ALL,
} as const;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** The server refuses less. */
const leastCatchUpMs = 10_000;
const hourMs = 3_600_000;

export function withScheduleOptions(command: Command): Command {
  return command
    .option('--cron <expression>', 'when, for example "0 3 * * *"')
    .option('--every <duration>', 'or how often, for example 6h', duration(unitMs.s))
    .option('--every-steps <n>', 'or after every n steps of the run of --run', wholeNumber(1, 1_000_000))
    .option('--run <id>', 'workflow id of a training run, which may start later')
    .addOption(
      new Option('--overlap <policy>', 'when one is due while the last one runs')
        .choices(Object.keys(overlaps))
        .default('skip'),
    )
    .addOption(
      new Option('--catch-up <duration>', 'how late a sweep may start that was missed while the server was down')
        .argParser(duration(leastCatchUpMs))
        .default(hourMs, '1h'),
    )
    .option('--jitter <duration>', 'a random delay up to this', duration(unitMs.s))
    .option('--timezone <name>', 'of --cron, for example Europe/Berlin (default: UTC)')
    .option('--paused', 'start nothing until it is resumed');
}

/** By a clock or by steps, never both; in words for those who look at it. */
export function whenOf(when: ScheduleWhen): {
  readonly spec: ScheduleSpec;
  readonly text: string;
  readonly steps: { readonly run: string; readonly everySteps: number } | null;
} {
  const { cron, every, everySteps, run, jitter, timezone } = when;
  const given = [cron, every, everySteps].filter((one) => one !== undefined).length;
  if (given !== 1) throw new UsageError(`expected one of --cron, --every and --every-steps, got ${given} of them`);
  if ((everySteps === undefined) !== (run === undefined))
    throw new UsageError('expected --every-steps and --run together, got one of them');
  if (timezone !== undefined && cron === undefined)
    throw new UsageError('--timezone: expected --cron beside it, got none');
  if (everySteps !== undefined && run !== undefined) {
    if (jitter !== undefined) throw new UsageError('--jitter: expected --cron or --every beside it, got --every-steps');
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
      `Expected at least ${leastMs / 1000}s as a number with s, m, h or d, for example 90s or 6h.`,
    );
  };
}

export function durationText(ms: number): string {
  const [unit, size] = Object.entries(unitMs).findLast(([, one]) => ms % one === 0) ?? ['s', unitMs.s];
  return `${ms / size}${unit}`;
}
