import { type Client, ScheduleAlreadyRunning } from '@temporalio/client';
import { controlQueue, sweepTaskTimeout } from '../../../../workflows/contracts/queues.ts';
import type { ScheduleMemo } from '../../../../workflows/contracts/schedule.ts';
import { searchAttributes } from '../../../../workflows/contracts/search-attributes.ts';
import { type SweepRequest, sweepInput } from '../../../../workflows/contracts/sweep.ts';
import type { evaluationSweep } from '../../../../workflows/index.ts';
import { withTaskSet } from '../../follow/workflow-input.ts';
import { type JsonOption, runningConfigOf } from '../../stack/command.ts';
import { setName } from '../../stack/set-name.ts';
import { UsageError } from '../../text/errors.ts';
import { counted, print, printJson } from '../../text/output.ts';
import { type SweepOptions, sweepRequestOf } from '../eval/sweep-options.ts';
import { overlaps, parseScheduleTimes, type ScheduleTimes, type ScheduleWhen } from './schedule-options.ts';

export type CreateOptions = JsonOption & SweepOptions & ScheduleWhen;

/**
 * Creates a schedule after all checks: the sweep's input here, the times by the server, which parses the cron
 * expression.
 */
export async function createSchedule(id: string, options: CreateOptions): Promise<void> {
  if (!/^[\w.-]{1,100}$/.test(id)) {
    throw new UsageError(`invalid id ${JSON.stringify(id)}; expected up to 100 letters, digits, '.', '_' or '-'`);
  }
  const request = await sweepRequestOf(options);
  const when = parseScheduleTimes(options);
  const { openStackClient } = await import('../../stack/stack-client.ts');
  const { requireSweepTasks } = await import('../../stack/require-tasks.ts');
  const stack = await openStackClient(await runningConfigOf(options));
  try {
    const named = await withTaskSet(request, stack);
    await requireSweepTasks(named, stack, new AbortController().signal);
    const about = aboutOf(named, await setName(stack, named.tasks));
    await create(stack.client, { id, request: named, about, options, when });
    const paused = options.paused === true;
    if (options.json) printJson({ id, when: when.text, paused });
    else print(`${id}: ${when.text}${paused ? ', paused' : ''}`);
  } finally {
    await stack.close();
  }
}

async function create(
  client: Client,
  {
    id,
    request,
    about,
    options,
    when,
  }: {
    readonly id: string;
    readonly request: SweepRequest;
    /** The work of its sweeps, for lists. */
    readonly about: string;
    readonly options: CreateOptions;
    readonly when: ScheduleTimes;
  },
): Promise<void> {
  const { overlap, catchUp, paused } = options;
  const { spec, text, steps } = when;
  const memo: ScheduleMemo = {
    temper: 'evaluationSweep',
    about,
    when: text,
    run: steps?.run ?? null,
    everySteps: steps?.everySteps ?? null,
  };
  try {
    await client.schedule.create<typeof evaluationSweep>({
      scheduleId: id,
      spec,
      policies: { overlap: overlaps[overlap], catchupWindow: catchUp },
      ...(paused === true && { state: { paused: true, note: 'created paused' } }),
      memo: { ...memo },
      ...(steps !== null && { typedSearchAttributes: [{ key: searchAttributes.run, value: steps.run }] }),
      action: {
        type: 'startWorkflow',
        workflowType: 'evaluationSweep',
        // The server appends the time.
        workflowId: id,
        taskQueue: controlQueue,
        args: [request],
        workflowTaskTimeout: sweepTaskTimeout,
        staticSummary: about,
      },
    });
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) {
      throw new Error(
        `a schedule with the id ${id} already exists; choose another id, or delete that one with \`temper schedule delete ${id}\``,
      );
    }
    // The client throws a TypeError when the server rejects the times of a schedule.
    if (error instanceof TypeError)
      throw new UsageError(`the server rejects ${text}: ${error.message}`, { cause: error });
    throw error;
  }
}

function aboutOf(request: SweepRequest, tasks: string): string {
  const { count, attempts, settings, upstream } = sweepInput.parse(request);
  const by = upstream === undefined ? '' : ` by ${upstream}`;
  return `${settings.agent}${by}: ${attempts} × ${counted(count, 'task')} of ${tasks}`;
}
