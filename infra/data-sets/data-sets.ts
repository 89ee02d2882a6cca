import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { sha256 } from '../store/files.ts';
import type { DataSet, DataSetFormat, DataSetOptions } from './data-set.ts';
import type { DataSetAddress } from './fetch/address.ts';
import { unpackArchive } from './fetch/archive.ts';
import { download, isThere } from './fetch/download.ts';
import { fetchFromHub, hubUrl, missing } from './fetch/hub.ts';
import { cloneOf, filesAt, mirrorOf } from './fetch/repository.ts';
import { dataSetFormats } from './formats/index.ts';

/** Where data sets from elsewhere are kept on this host, and whether they may be brought. */
export interface DataSetCache {
  readonly directory: string;
  /** Whoever may start a workflow names data sets: workers read what is in the cache, and fetch nothing. */
  readonly offline: boolean;
  /** The hub's address; for tests. */
  readonly hub?: string;
}

export interface DataSetsDependencies {
  readonly cache: DataSetCache;
  /** A path as it really is, when it may be read. */
  resolvePath(path: string): Promise<string>;
}

export interface DataSets {
  /** Brings it to this host where it has to be, and opens it. Throws TemperFailure UnknownTask or MalformedTask. */
  open(address: DataSetAddress): Promise<DataSet>;
}

export function createDataSets({ cache, resolvePath }: DataSetsDependencies): DataSets {
  const root = join(cache.directory, 'data-sets');
  const opened = new Map<string, Promise<DataSet>>();

  async function openNow({ format: name, place, options }: DataSetAddress): Promise<DataSet> {
    const format = dataSetFormats[name];
    return format.open({
      paths: await pathsOf(place, format, options),
      options,
      checkOut: async (repository, commit) => filesAt(await repositoryAt(repository, options), commit),
      unpack: (archive) => unpackArchive(archive, join(root, 'unpacked')),
    });
  }

  async function pathsOf(place: DataSetAddress['place'], format: DataSetFormat, options: DataSetOptions) {
    const wants = (path: string): boolean => format.wants(path) && isOfSplit(path, options.split);
    if (place.kind === 'path') return pathsBelow(await resolvePath(place.path), wants);
    if (place.kind === 'url') return [await fromUrl(place.url, options)];
    const hub = { url: cache.hub ?? hubUrl, directory: join(root, 'hub'), offline: cache.offline };
    return fetchFromHub(hub, place, wants);
  }

  async function fromUrl(url: string, { sha256: digest }: DataSetOptions): Promise<string> {
    const name = basename(new URL(url).pathname);
    const target = join(root, 'urls', sha256(`${url}\n${digest ?? ''}`).slice(0, 24), name === '' ? 'file' : name);
    if (await isThere(target)) return target;
    if (cache.offline) throw missing(url, target);
    await download(url, target, digest === undefined ? null : { kind: 'sha256', digest });
    return target;
  }

  async function repositoryAt(repository: string, { repositories = '' }: DataSetOptions): Promise<string> {
    if (!/^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/.test(repository)) {
      throw new TemperFailure('MalformedTask', `repo: expected "owner/name", got ${JSON.stringify(repository)}`);
    }
    if (!/^https?:\/\//.test(repositories)) return mirrorOf(await resolvePath(repositories), repository);
    const url = `${repositories.replace(/\/$/, '')}/${repository}.git`;
    return cloneOf(url, { directory: join(root, 'repositories'), offline: cache.offline });
  }

  return {
    open(address) {
      const key = JSON.stringify([address.format, address.place, address.options]);
      const known = opened.get(key) ?? openNow(address);
      opened.set(key, known);
      known.catch(() => opened.delete(key));
      return known;
    },
  };
}

/** `train` as a word of a file's name or of a folder's: `data/train-00000-of-00001.parquet`, `train.jsonl`. */
const isOfSplit = (path: string, split: string | undefined): boolean =>
  split === undefined || path.split(/[^A-Za-z0-9]+/).includes(split);

/** The wanted files of a directory, or it itself where it has none; a file as it is. */
async function pathsBelow(path: string, wants: (path: string) => boolean): Promise<readonly string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && wants(entry.name)).map((entry) => join(path, entry.name));
  return files.length === 0 ? [path] : files.sort();
}
