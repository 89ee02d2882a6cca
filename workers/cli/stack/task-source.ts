import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRemote, parseDataSetAddress } from '../../../infra/data-sets/address.ts';
import { findMarked } from '../../../infra/data-sets/directories/marked-directories.ts';
import { isDataSetFormat } from '../../../infra/data-sets/formats/index.ts';
import { hubAccountFrom } from '../../../infra/data-sets/hub-account.ts';
import { resolvePackage } from '../../../infra/load-module.ts';
import { exists } from '../../../infra/process/exists.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { moduleFrom } from '../../../infra/settings/modules.ts';
import type { Store } from '../../../infra/store/store.ts';
import { isAddress, parseHarborAddress } from '../../../infra/tasks/address.ts';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { asUsageError, UsageError } from '../text/errors.ts';

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
  const roots = [...config.taskRoots, ...pathsOf(address)];
  const hub = readNamed(() => hubAccountFrom(config.env));
  return {
    address,
    tasks: createTasks({ store, roots, dataSets: { directory: config.cacheDir, offline, hub, runsModules: true } }),
  };
}

/** Refuses tasks that are not there, as far as that shows without reading them, so that nothing is started for them. */
export async function requireTasks(named: string): Promise<void> {
  for (const path of pathsOf(await addressOf(named))) {
    if (!(await exists(path))) throw new UsageError(`${JSON.stringify(named)}: there is no file or directory ${path}`);
  }
}

async function addressOf(named: string): Promise<string> {
  const absolute = await withAbsolutePath(named);
  if (readNamed(() => isAddress(absolute))) return absolute;
  const path = resolve(named);
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory()) return `${await formatOf(path)}:${path}`;
  const text = JSON.stringify(named);
  const problem =
    found === null
      ? `${text} is neither a file or directory here nor an address`
      : `${text} is a file, which needs the name of its format before it`;
  throw new UsageError(
    `${problem}; expected a directory, an address such as generated:test/1?count=8, or a data set such as swe-gym:./rows.jsonl`,
  );
}

/** Tells the format of a directory by the file that its first task has, also in groups: Harbor's, unless it is terminal-bench's. */
async function formatOf(directory: string): Promise<'harbor' | 'terminal-bench'> {
  const entries = await readdir(directory, { withFileTypes: true });
  const children = entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
  for (const path of [directory, ...children.sort()]) {
    const [toml, yaml] = await Promise.all([exists(join(path, 'task.toml')), exists(join(path, 'task.yaml'))]);
    if (toml || yaml) return toml ? 'harbor' : 'terminal-bench';
  }
  const [toml, yaml] = await Promise.all([findMarked(directory, 'task.toml'), findMarked(directory, 'task.yaml')]);
  return toml.tasks.length === 0 && yaml.tasks.length > 0 ? 'terminal-bench' : 'harbor';
}

/** Makes the path of an address absolute, since workers have another current directory. A package stands for its module. */
async function withAbsolutePath(named: string): Promise<string> {
  const [, format = '', path = ''] = /^([a-z0-9-]+):([^?#]+)/.exec(named) ?? [];
  if (format !== 'harbor' && !isDataSetFormat(format)) return named;
  if (path.startsWith('/') || isRemote(path)) return named;
  const absolute = format === 'module' && !(await exists(resolve(path))) ? moduleOf(path) : resolve(path);
  return `${format}:${absolute}${named.slice(`${format}:${path}`.length)}`;
}

/** Finds the module of a package with tasks. */
function moduleOf(named: string): string {
  if (moduleFrom(named) !== named) return resolve(named);
  try {
    return fileURLToPath(resolvePackage(named));
  } catch (error) {
    throw new UsageError(
      `module:${named} is neither a file here nor a package that is installed in the working directory or beside temper (${errorMessage(error)})`,
    );
  }
}

/** Lists the paths of an address, which this process, unlike a worker, reads wherever they are. */
export function pathsOf(address: string): readonly string[] {
  const harbor = readNamed(() => parseHarborAddress(address));
  if (harbor !== null) return [harbor.directory];
  const dataSet = readNamed(() => parseDataSetAddress(address));
  if (dataSet === null) return [];
  const { location, options } = dataSet;
  const { repositories } = options;
  return [
    ...(location.kind === 'path' ? [location.path] : []),
    ...(repositories?.startsWith('/') ? [repositories] : []),
  ];
}

/** Reads what the user named. Throws a UsageError if that fails. */
function readNamed<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw asUsageError(error);
  }
}
