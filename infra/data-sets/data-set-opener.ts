import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { exists } from '../process/exists.ts';
import { sha256 } from '../store/files.ts';
import type { DataSetAddress } from './address.ts';
import type { DataSet, DataSetFormat, DataSetOptions } from './data-set.ts';
import { unpackArchive } from './fetch/archive.ts';
import { notCached } from './fetch/cache.ts';
import { checkOutRevision } from './fetch/check-out.ts';
import { download } from './fetch/download.ts';
import { fetchFromHub } from './fetch/hub.ts';
import { cloneOnce, filesAtCommit, findMirror } from './fetch/repository.ts';
import { dataSetFormats } from './formats/index.ts';
import { type HubAccount, hubUrl } from './hub-account.ts';
import { createUses } from './uses.ts';

/** The cache of downloaded data sets on this host. */
export interface DataSetCache {
  readonly directory: string;
  /** Forbids downloads. Workers set it: anyone who may start a workflow may name a data set, so workers only read the cache. */
  readonly offline: boolean;
  /**
   * Whether a module of the user's own may run. Default: false. Workers never run one, because everyone who starts a
   * workflow chooses its tasks.
   */
  readonly runsModules?: boolean;
  /** Default: the public hub, without an account. */
  readonly hub?: HubAccount;
}

export interface DataSetOpenerDependencies {
  readonly cache: DataSetCache;
  /** Returns the real path of a path that may be read. Throws TemperFailure UnknownTask for any other. */
  resolvePath(path: string): Promise<string>;
}

export interface DataSetOpener {
  /** Downloads a data set if necessary and opens it. Throws TemperFailure UnknownTask or MalformedTask. */
  open(address: DataSetAddress): Promise<DataSet>;
}

export function createDataSetOpener({ cache, resolvePath }: DataSetOpenerDependencies): DataSetOpener {
  const root = join(cache.directory, 'data-sets');
  const opened = new Map<string, Promise<DataSet>>();
  const uses = createUses(root);

  async function openNow(address: DataSetAddress): Promise<DataSet> {
    const { format: name, options } = address;
    const format: DataSetFormat = dataSetFormats[name];
    if (format.runsCode === true) requireOwnModule(address, cache);
    const used = async (path: string): Promise<string> => {
      await uses.record(address, path);
      return path;
    };
    return format.open({
      paths: await Promise.all((await locate(address, format, used)).map(used)),
      options,
      checkOut: async (repository, commit) =>
        filesAtCommit(await used(await repositoryPath(repository, options)), commit),
      unpack: async (archive) => used(await unpackArchive(archive, join(root, 'unpacked'))),
    });
  }

  async function locate(
    { location, options }: DataSetAddress,
    format: DataSetFormat,
    used: (path: string) => Promise<string>,
  ): Promise<readonly string[]> {
    const wants = (path: string): boolean => format.wants(path) && isInSplit(path, options.split);
    if (location.kind === 'path') return wantedFiles(await resolvePath(location.path), wants);
    if (location.kind === 'url') return [await fetchUrl(location.url, options)];
    const { hub = { url: hubUrl, token: null }, offline } = cache;
    if (location.kind === 'hub') {
      return fetchFromHub({ ...hub, directory: join(root, 'hub'), offline }, location, { ...format, wants });
    }
    const repository = await used(await cloneOnce(location.url, { directory: join(root, 'repositories'), offline }));
    const checkedOut = await checkOutRevision(repository, location, { directory: join(root, 'unpacked'), offline });
    return wantedFiles(checkedOut, wants);
  }

  async function fetchUrl(url: string, { sha256: digest }: DataSetOptions): Promise<string> {
    const name = basename(new URL(url).pathname);
    const target = join(root, 'urls', sha256(`${url}\n${digest ?? ''}`).slice(0, 24), name === '' ? 'file' : name);
    if (await exists(target)) return target;
    if (cache.offline) throw notCached(url, target);
    await download(url, target, digest === undefined ? null : { kind: 'sha256', digest });
    return target;
  }

  async function repositoryPath(repository: string, { repositories = '' }: DataSetOptions): Promise<string> {
    if (!/^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/.test(repository)) {
      throw new TemperFailure('MalformedTask', `repo: expected "owner/name", got ${JSON.stringify(repository)}`);
    }
    if (!/^https?:\/\//.test(repositories)) return findMirror(await resolvePath(repositories), repository);
    const url = `${repositories.replace(/\/$/, '')}/${repository}.git`;
    return cloneOnce(url, { directory: join(root, 'repositories'), offline: cache.offline });
  }

  return {
    async open(address) {
      await uses.record(address);
      const key = JSON.stringify([address.format, address.location, address.options]);
      const known = opened.get(key) ?? openNow(address);
      opened.set(key, known);
      known.catch(() => opened.delete(key));
      return known;
    },
  };
}

/** Refuses a module unless it is a file of the user's own, in a command of the user's own. */
function requireOwnModule({ location }: DataSetAddress, { runsModules = false }: DataSetCache): void {
  if (location.kind !== 'path') {
    throw new TemperFailure('UnknownTask', 'module: expected the path of a module, got the address of a download');
  }
  if (runsModules) return;
  throw new TemperFailure(
    'UnknownTask',
    `module:${location.path}: workers run no modules; pack its tasks with \`temper tasks add\` and name the packed set`,
  );
}

/** Whether a path has `split` as a word: `data/train-00000-of-00001.parquet` and `train.jsonl` are in `train`. */
const isInSplit = (path: string, split: string | undefined): boolean =>
  split === undefined || path.split(/[^A-Za-z0-9]+/).includes(split);

/** The wanted files of a directory, or the directory when it contains none. A path of a file is returned unchanged. */
async function wantedFiles(path: string, wants: (path: string) => boolean): Promise<readonly string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && wants(entry.name)).map((entry) => join(path, entry.name));
  return files.length === 0 ? [path] : files.sort();
}
