import { type JsonOption, wholeNumber } from '../../stack/command.ts';
import { onStack } from '../../stack/on-stack.ts';
import { startedSet } from '../../stack/set-name.ts';
import { ago, note, print, printJson, table } from '../../text/output.ts';

export const listLimit = wholeNumber(1, 1000);

interface ListOptions extends JsonOption {
  readonly limit: number;
}

// The executions before the last one are the same sweep.
const query = 'WorkflowType = "evaluationSweep" AND ExecutionStatus != "ContinuedAsNew"';

/** Lists the newest sweeps with their tasks. */
export const listSweeps = (options: ListOptions): Promise<void> =>
  onStack(options, async (stack) => {
    const rows: { id: string; status: string; tasks: string | null; startedAt: string }[] = [];
    for await (const { workflowId: id, status, startTime } of stack.client.workflow.list({
      query,
      pageSize: options.limit,
    })) {
      const tasks = await startedSet(stack, id);
      rows.push({ id, status: status.name.toLowerCase(), tasks, startedAt: startTime.toISOString() });
      if (rows.length === options.limit) break;
    }
    if (options.json) for (const row of rows) printJson(row);
    else if (rows.length === 0) note('no sweeps yet; `temper eval --tasks …` starts one');
    else {
      const cells = rows.map(({ id, status, tasks, startedAt }) => [id, status, tasks ?? '-', ago(startedAt)]);
      print(table(['sweep', 'status', 'tasks', 'started'], cells));
    }
  });
