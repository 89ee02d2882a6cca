import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Config } from '../../../infra/config.ts';
import { parseDataSetAddress } from '../../../infra/data-sets/address.ts';
import type { Store } from '../../../infra/store/store.ts';
import { isAddress } from '../../../infra/tasks/address.ts';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { UsageError } from '../text/errors.ts';

export interface TaskSource {
  readonly tasks: Tasks;
  /** The address of what the user named: a set, or one task. */
  readonly address: string;
}

/**
 * Tasks that a user names by an address or by a directory. Paths may be relative to where the command runs, and lead
 * anywhere: unlike a workflow's input, they come from somebody who may read this machine's files.
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
  if (asUsage(() => isAddress(absolute))) return absolute;
  const directory = resolve(named);
  const found = await stat(directory).catch(() => null);
  if (found?.isDirectory()) return `harbor:${directory}`;
  throw new UsageError(
    `expected a directory, an address such as generated:test/1?count=8 or a data set such as swe-gym:./rows.jsonl, got ${JSON.stringify(named)}`,
  );
}

/** An address of the stack's own stays within its roots: it means the same here as in a workflow's input. */
function pathsNamed(address: string, named: string): readonly string[] {
  if (address.startsWith('harbor:')) return address === named ? [] : [address.slice('harbor:'.length)];
  const dataSet = asUsage(() => parseDataSetAddress(address));
  if (dataSet === null) return [];
  const { location, options } = dataSet;
  const { repositories } = options;
  return [
    ...(location.kind === 'path' ? [location.path] : []),
    ...(repositories?.startsWith('/') ? [repositories] : []),
  ];
}

function asUsage<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw error instanceof TemperFailure ? new UsageError(error.message, { cause: error }) : error;
  }
}
