import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Config } from '../../../infra/config.ts';
import { parseDataSetAddress } from '../../../infra/data-sets/address.ts';
import type { Store } from '../../../infra/store/store.ts';
import { isAddress } from '../../../infra/tasks/address.ts';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { taskUsageError, UsageError } from '../text/errors.ts';

export interface TaskSource {
  readonly tasks: Tasks;
  /** Address of the task or the set that the user named. */
  readonly address: string;
}

/**
 * Opens the tasks that a user names by an address or a directory. Paths may be relative to the current directory and
 * lead anywhere: unlike a workflow's input, they come from a user who may read this machine's files.
 */
export async function openTaskSource(
  named: string,
  { config, store, offline }: { readonly config: Config; readonly store: Store; readonly offline: boolean },
): Promise<TaskSource> {
  const address = await addressOf(named);
  const roots = [...config.taskRoots, ...pathsNamed(address, named)];
  return { address, tasks: createTasks({ store, roots, dataSets: { directory: config.cacheDir, offline } }) };
}

async function addressOf(named: string): Promise<string> {
  const absolute = named.replace(
    /^([a-z0-9-]+):(\.{1,2}\/[^?#]*)/,
    (_, format: string, path: string) => `${format}:${resolve(path)}`,
  );
  if (orTaskUsage(() => isAddress(absolute))) return absolute;
  const directory = resolve(named);
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory()) return `harbor:${directory}`;
  throw new UsageError(
    `${JSON.stringify(named)} is neither a directory nor an address; expected a directory, an address such as generated:test/1?count=8, or a data set such as swe-gym:./rows.jsonl`,
  );
}

/**
 * Lists the paths that the user named. An address of tasks in the stack's own roots adds none, so that it means the
 * same as in a workflow's input.
 */
function pathsNamed(address: string, named: string): readonly string[] {
  if (address.startsWith('harbor:')) return address === named ? [] : [address.slice('harbor:'.length)];
  const dataSet = orTaskUsage(() => parseDataSetAddress(address));
  if (dataSet === null) return [];
  const { location, options } = dataSet;
  const { repositories } = options;
  return [
    ...(location.kind === 'path' ? [location.path] : []),
    ...(repositories?.startsWith('/') ? [repositories] : []),
  ];
}

function orTaskUsage<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw taskUsageError(error);
  }
}
