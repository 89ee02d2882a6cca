import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { AgentSpec } from '../../../infra/agents/agent.ts';
import { taskDirectories } from '../../../infra/tasks/addresses.ts';
import { createTasks } from '../../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { ResolvedTask } from '../../../workflows/contracts/task.ts';
import { trainAllBranches } from '../../../workflows/contracts/trace.ts';
import { UsageError } from '../errors.ts';
import type { StackClient } from '../stack-client.ts';
import { type RolloutRow, rowWithout } from './row.ts';

export interface FoundTasks {
  readonly ready: readonly ResolvedTask[];
  /** Tasks that are none: one broken one must not hide the results of the others. */
  readonly broken: readonly RolloutRow[];
}

/** Packs what `--tasks` names into the store, so that every host has the same bytes. */
export async function findTasks(named: string, { config, store }: StackClient, agent: AgentSpec): Promise<FoundTasks> {
  const isAddress = /^(generated|harbor|blob):/.test(named);
  const roots = isAddress ? config.taskRoots : [resolve(named)];
  const tasks = createTasks({ store, roots });
  const addresses = await (isAddress ? tasks.list(named) : directories(named)).catch((error: unknown) => {
    throw error instanceof TemperFailure ? new UsageError(`--tasks: ${error.message}`) : error;
  });
  const { usesModel, branches = trainAllBranches } = agent;
  const ready: ResolvedTask[] = [];
  const broken: RolloutRow[] = [];
  for (const address of addresses) {
    try {
      ready.push({ task: await tasks.resolve(address), usesModel, branches });
    } catch (error) {
      if (!(error instanceof TemperFailure)) throw error;
      const { type, message } = error;
      broken.push(
        rowWithout(null, nameOf(address), agent.name, 'invalid-task', { type, message, stage: 'resolveTask' }),
      );
    }
  }
  return { ready, broken };
}

async function directories(named: string): Promise<readonly string[]> {
  const directory = resolve(named);
  const found = await stat(directory).catch(() => null);
  if (!found?.isDirectory()) {
    throw new UsageError(
      `--tasks: expected a directory or an address such as generated:test/1?count=8, got ${JSON.stringify(named)}`,
    );
  }
  return (await taskDirectories(directory)).map((path) => `harbor:${path}`);
}

const nameOf = (address: string): string => (address.startsWith('harbor:') ? basename(address) : address);
