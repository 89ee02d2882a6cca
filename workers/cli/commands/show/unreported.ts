import { z } from 'zod';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { isUnreadable, ownerKeyOf } from '../../../../infra/store/rollout-records.ts';
import { shortKey } from '../../../../workflows/contracts/ids.ts';
import type { KnownWorkflow } from '../../follow/find-known.ts';
import { endOf } from '../../follow/workflow-end.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';
import { counted, mostRows, print, printJson, table } from '../../text/output.ts';
import { showWithoutRecord } from './recorded.ts';

/** One rollout of a sweep or a regrade, as the store has it. */
interface RecordedRow {
  readonly rollout: string;
  readonly task: string;
  /** The outcome, or what the regrade found; `unreadable` if the record cannot be read. */
  readonly end: string;
  readonly reward: number | null;
}

/** Shows a sweep that has no report, such as one that was terminated: the records of its rollouts. */
export const showSweepWithoutReport = async (stack: ReadableStack, known: KnownWorkflow, json: boolean) =>
  showRows(known, await attemptsOf(stack, known), json);

/** Shows a regrade that has no report: what it has recorded of rollouts. */
export const showRegradeWithoutReport = async (stack: ReadableStack, known: KnownWorkflow, json: boolean) =>
  showRows(known, await regradedBy(stack, known), json);

async function showRows(known: KnownWorkflow, unsorted: readonly RecordedRow[], json: boolean): Promise<void> {
  if (unsorted.length === 0) return showWithoutRecord(known, json);
  const rows = unsorted.toSorted((a, b) => a.rollout.localeCompare(b.rollout, 'en', { numeric: true }));
  const { id, kind, found } = known;
  const status = found?.description.status.name.toLowerCase() ?? null;
  const end = found === null ? null : await endOf(found.handle);
  if (json) return printJson({ id, kind, status, end, rollouts: rows });
  const ends = Array.from(
    Map.groupBy(rows, ({ end }) => end),
    ([name, of]) => `${name} ${of.length}`,
  );
  const cells = rows
    .slice(0, mostRows)
    .map(({ rollout, task, end, reward }) => [rollout, task, end, reward?.toFixed(2) ?? '-']);
  const lines = [
    `${id} (${status ?? 'no end recorded'})`,
    ...(end === null ? [] : [`${end.kind}: ${end.message}`]),
    `it has no report${found === null ? ', since it still runs, was terminated or failed' : ''}; the store holds ${counted(rows.length, 'rollout')} of it: ${ends.join(', ')}`,
    '',
    table(['rollout', 'task', 'end', 'reward'], cells),
    ...(rows.length > mostRows ? [`… and ${rows.length - mostRows} more; --json prints all`] : []),
  ];
  print(showHidden(lines.join('\n')));
}

async function attemptsOf({ shared }: ReadableStack, { id, key }: KnownWorkflow): Promise<readonly RecordedRow[]> {
  const { rollouts } = shared;
  const rows: RecordedRow[] = [];
  for await (const { key: at } of rollouts.list(id)) {
    if (ownerKeyOf(at) !== shortKey(key)) continue;
    const record = await rollouts.read(at).catch((error: unknown) => {
      if (isUnreadable(error)) return error;
      throw error;
    });
    if (record === null) continue;
    if (record instanceof Error) rows.push({ rollout: at, task: '-', end: 'unreadable', reward: null });
    else {
      const { workflowId: rollout, task, outcome: end, reward } = record.result;
      rows.push({ rollout, task, end, reward });
    }
  }
  return rows;
}

/** The records of a regrade that hold its rows. */
const rowsRecord = /^rows-\d+$/;
const regradeRows = z.array(
  z.looseObject({ rollout: z.string(), task: z.string(), state: z.string(), after: z.number().nullable() }),
);

async function regradedBy({ records }: ReadableStack, { key }: KnownWorkflow): Promise<readonly RecordedRow[]> {
  const names = (await records.names(key)).filter((name) => rowsRecord.test(name));
  const chunks = await Promise.all(names.map(async (name) => regradeRows.parse(await records.read(key, name))));
  return chunks.flat().map(({ rollout, task, state: end, after: reward }) => ({ rollout, task, end, reward }));
}
