import type { Client } from '@temporalio/client';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import type { Objects } from '../store/objects.ts';
import { newestChain } from '../temporal/chain.ts';
import { textOf } from './object-text.ts';
import { inputOf } from './references/history.ts';

/** The knowledge of the Temporal server that a pass depends on. Each question is asked once. All throw if the server does not answer. */
export interface Knowledge {
  client(): Promise<Client>;
  /** The keys of the runs, sweeps and regrades that are open. */
  openKeys(): Promise<ReadonlySet<string>>;
  /** The policy versions that open sweeps evaluate, or that a schedule names. */
  pinnedVersions(): Promise<ReadonlySet<number>>;
  /** The keys of the records in the plans of open regrades: of the rollouts that they grade, or have graded. */
  plannedRecords(objects: Objects): Promise<ReadonlySet<string>>;
  /** The inputs of all schedules, as JSON. */
  scheduleInputs(): Promise<readonly string[]>;
  /** The inputs of the runs, sweeps and regrades that are open, as JSON. */
  openInputs(): Promise<readonly string[]>;
}

interface Open {
  readonly key: string;
  readonly version: number | undefined;
  readonly workflowId: string;
  readonly runId: string;
}

const openQuery = 'WorkflowType IN ("trainingRun", "evaluationSweep", "regrade") AND ExecutionStatus="Running"';

export function createKnowledge(connect: () => Promise<Client>): Knowledge {
  const client = once(connect);
  const open = once(async () => {
    const found: Open[] = [];
    for await (const one of (await client()).workflow.list({ query: openQuery })) {
      const { workflowId, runId, typedSearchAttributes } = one;
      const chain = await newestChain(await client(), workflowId);
      if (!chain?.running) continue;
      const version = typedSearchAttributes.get(searchAttributes.policyVersion);
      found.push({ key: chain.key, version, workflowId, runId });
    }
    return found;
  });
  const scheduleInputs = once(async () => {
    const inputs: string[] = [];
    const { schedule } = await client();
    for await (const { scheduleId } of schedule.list()) {
      const { action } = await schedule.getHandle(scheduleId).describe();
      inputs.push(JSON.stringify(action.args ?? []));
    }
    return inputs;
  });
  const openKeys = once(async () => new Set((await open()).map(({ key }) => key)));
  return {
    client,
    scheduleInputs,
    openKeys,
    openInputs: once(async () => {
      const inputs: string[] = [];
      for (const execution of await open()) inputs.push(await inputOf(await client(), execution));
      return inputs;
    }),
    async plannedRecords(objects) {
      const planned = new Set<string>();
      for (const open of await openKeys()) {
        for await (const { key } of objects.list(`runs/${open}`)) {
          if (!/\/plan-\d+\.json$/.test(key)) continue;
          for (const [, id] of (await textOf({ objects }, key)).matchAll(/"record":"([^"]+)"/g))
            planned.add(String(id));
        }
      }
      return planned;
    },
    pinnedVersions: once(async () => {
      const ofSweeps = (await open()).flatMap(({ version }) => version ?? []);
      const ofSchedules = (await scheduleInputs()).flatMap((input) =>
        [...input.matchAll(/"policyVersion":(\d+)/g)].map(([, version]) => Number(version)),
      );
      return new Set([...ofSweeps, ...ofSchedules]);
    }),
  };
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | null = null;
  return () => {
    asked ??= ask();
    return asked;
  };
}
