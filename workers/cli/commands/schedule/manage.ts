import { type Client, type ScheduleHandle, ScheduleNotFoundError } from '@temporalio/client';
import { type ScheduleMemo, scheduleMemo } from '../../../../workflows/contracts/schedule.ts';
import type { HomeOption, JsonOption } from '../../stack/command.ts';
import { onStack } from '../../stack/on-stack.ts';
import { ago, note, print, printJson, table } from '../../text/output.ts';

interface ScheduleRow extends Pick<ScheduleMemo, 'about' | 'when' | 'run'> {
  readonly id: string;
  readonly paused: boolean;
  readonly note: string | null;
  readonly next: string | null;
  /** The last sweep that it started. */
  readonly last: { readonly sweep: string; readonly at: string } | null;
}

export async function listSchedules(options: JsonOption): Promise<void> {
  await onStack(options, async ({ client }) => {
    const rows = await rowsOf(client);
    if (options.json) return rows.forEach(printJson);
    if (rows.length === 0) return note('no schedules of sweeps; create one with `temper schedule create`');
    print(
      table(
        ['schedule', 'when', 'starts', 'state', 'next', 'last sweep'],
        rows.map(({ id, when, about, paused, note, next, last }) => [
          id,
          when,
          about,
          paused ? `paused${note === null ? '' : `: ${note}`}` : 'active',
          next ?? '-',
          last === null ? '-' : `${last.sweep}, ${ago(last.at)}`,
        ]),
      ),
    );
  });
}

async function rowsOf(client: Client): Promise<ScheduleRow[]> {
  const rows: ScheduleRow[] = [];
  for await (const { scheduleId: id, memo, state, info } of client.schedule.list()) {
    const parsed = scheduleMemo.safeParse(memo);
    if (!parsed.success) continue;
    const { about, when, run } = parsed.data;
    const last = info.recentActions.at(-1);
    rows.push({
      id,
      about,
      when,
      run,
      paused: state.paused,
      note: state.note === undefined || state.note === '' ? null : state.note,
      next: state.paused ? null : (info.nextActionTimes[0]?.toISOString() ?? null),
      last: last === undefined ? null : { sweep: last.action.workflow.workflowId, at: last.takenAt.toISOString() },
    });
  }
  return rows;
}

export const triggerSchedule = (id: string, options: JsonOption): Promise<void> =>
  withSchedule(id, options, async (handle) => {
    await handle.trigger();
    if (options.json) printJson({ id, triggered: true });
    else {
      print(`triggered ${id}`);
      note('see `temper status` for its sweep');
    }
  });

export const pauseSchedule = (id: string, options: JsonOption & { readonly reason?: string }): Promise<void> =>
  withSchedule(id, options, async (handle) => {
    await handle.pause(options.reason ?? 'paused by hand');
    if (options.json) printJson({ id, paused: true });
    else {
      print(`paused ${id}`);
      note(`resume it with \`temper schedule resume ${id}\``);
    }
  });

export const resumeSchedule = (id: string, options: JsonOption): Promise<void> =>
  withSchedule(id, options, async (handle) => {
    await handle.unpause('resumed by hand');
    if (options.json) printJson({ id, paused: false });
    else print(`resumed ${id}`);
  });

export const deleteSchedule = (id: string, options: JsonOption): Promise<void> =>
  withSchedule(id, options, async (handle) => {
    await handle.delete();
    if (options.json) printJson({ id, deleted: true });
    else print(`deleted ${id}`);
  });

/** Works on a schedule of sweeps; any other schedule, such as a reaper's, is refused. */
async function withSchedule(
  id: string,
  options: HomeOption,
  work: (handle: ScheduleHandle) => Promise<void>,
): Promise<void> {
  await onStack(options, async ({ client }) => {
    const handle = client.schedule.getHandle(id);
    const description = await handle.describe().catch((error: unknown) => {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
      throw new Error(`this server knows no schedule with the id ${id}; \`temper schedule list\` lists them`);
    });
    if (!scheduleMemo.safeParse(description.memo).success) {
      throw new Error(`${id} was not created by \`temper schedule\`; use \`temporal schedule\` to manage it`);
    }
    await work(handle);
  });
}
