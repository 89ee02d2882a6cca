import type { Client } from '@temporalio/client';
import { readChunk, readChunks, writeChunk } from '../../infra/store/chunks.ts';
import type { Records } from '../../infra/store/records.ts';
import type { RolloutRecords } from '../../infra/store/rollout-records.ts';
import type { StartRecords } from '../../infra/store/start-records.ts';
import type { Store } from '../../infra/store/store.ts';
import type { Quarantine } from '../../infra/tasks/quarantine.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import type { RegradeReport, RegradeRow } from '../../workflows/contracts/regrade.ts';
import { type RegradeRecord, recordFormat } from '../../workflows/contracts/rollout-record.ts';
import { atBoundary } from '../boundary.ts';
import type { RegradeActivities } from '../interfaces/control.ts';
import { type FinishedRef, finishedRef, listFinished } from './regrades/list-finished.ts';
import { readFinished } from './regrades/read-finished.ts';
import { createRepairedTasks } from './regrades/repaired-tasks.ts';

export interface RegradeDependencies {
  readonly client: Client;
  readonly tasks: Pick<Tasks, 'resolve' | 'scan'>;
  readonly store: Store;
  readonly records: Records;
  readonly rollouts: RolloutRecords;
  readonly starts: Pick<StartRecords, 'write'>;
  readonly quarantine: Pick<Quarantine, 'add'>;
}

/** The number of rollouts in one record of the list, all of which are read to get one. */
const pageSize = 100;
const pageNames = 'plan';
const chunkNames = 'rows';

/** Creates the activities of a regrade: they list and read rollouts that have ended, and write records and the report. */
export function createRegradeActivities(deps: RegradeDependencies): RegradeActivities {
  const { store, records, rollouts } = deps;
  const repairedTasks = createRepairedTasks(deps);

  /** Writes the list page by page while it is read, because it may have any length. */
  async function plan(regradeKey: string, found: AsyncIterable<FinishedRef>): Promise<number> {
    let page: FinishedRef[] = [];
    let pages = 0;
    const flush = async (): Promise<void> => {
      await writeChunk(records, { runKey: regradeKey, name: pageNames }, pages, page);
      pages += 1;
      page = [];
    };
    for await (const one of found) {
      page.push(one);
      if (page.length === pageSize) await flush();
    }
    const rollouts = pages * pageSize + page.length;
    if (page.length > 0) await flush();
    return rollouts;
  }

  async function refOf(regradeKey: string, number: number): Promise<FinishedRef> {
    const page = await readChunk(records, { runKey: regradeKey, name: pageNames }, Math.floor(number / pageSize));
    return finishedRef.parse(page[number % pageSize]);
  }

  return {
    planRegrade: ({ regrade, regradeKey, startedAt, input }) =>
      atBoundary(async () => {
        await deps.starts.write({ kind: 'regrade', id: regrade, key: regradeKey, startedAt, input });
        if (input.tasks !== undefined) await repairedTasks.plan(regradeKey, input.tasks);
        return { rollouts: await plan(regradeKey, listFinished(deps, input)) };
      }),
    readFinished: ({ regradeKey, number, grader, repaired }) =>
      atBoundary(async () => {
        const addressNow = repaired === true ? (id: string) => repairedTasks.addressOf(regradeKey, id) : null;
        return readFinished(deps, await refOf(regradeKey, number), grader, addressNow);
      }),
    recordRegrades: ({ regrade, regradeKey, chunk, rows }) =>
      atBoundary(async () => {
        await Promise.all(rows.map((row) => recordRow(rollouts, { regrade, regradeKey, row })));
        await writeChunk(records, { runKey: regradeKey, name: chunkNames }, chunk, rows);
      }),
    summariseRegrade: ({ chunks, ...regrade }) =>
      atBoundary(async () => {
        const { regradeKey, result } = regrade;
        const list = { runKey: regradeKey, name: chunkNames };
        const rows = (await readChunks(records, list, chunks)) as readonly RegradeRow[];
        for (const row of rows) await quarantineFlaky(deps.quarantine, regradeKey, row);
        const report: RegradeReport = { ...regrade, rows };
        const blob = await store.putJson(report);
        await records.write(regradeKey, 'regrade', { report: blob });
        return { ...result, report: blob };
      }),
  };
}

/** Writes what a regrade found beside the record of the rollout, unless it left the rollout out. */
async function recordRow(
  rollouts: Pick<RolloutRecords, 'writeRegrade'>,
  of: Pick<RegradeRecord, 'regrade' | 'regradeKey' | 'row'>,
): Promise<void> {
  const { rollout: workflowId, rolloutKey: rollout, state } = of.row;
  if (state === 'left-out') return;
  await rollouts.writeRegrade({ workflowId, rollout }, { format: recordFormat, ...of, recordedAt: Date.now() });
}

async function quarantineFlaky(
  quarantine: Pick<Quarantine, 'add'>,
  by: string,
  { rollout, task, flaky, evaluations }: RegradeRow,
): Promise<void> {
  if (flaky === undefined) return;
  const { addresses, diff } = flaky;
  const evidence = evaluations.map(({ reward, kind, log }) => ({ rollout, reward, verdict: kind, diff, log }));
  await quarantine.add({ task, addresses, evidence, by });
}
