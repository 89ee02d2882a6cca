import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import PQueue from 'p-queue';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { explanationOf, HttpUnreachable, httpCall, jsonOf } from '../../http/client.ts';
import { exists } from '../../process/exists.ts';
import type { DataSetFormat, DataSetLocation } from '../data-set.ts';
import type { HubAccount } from '../hub-account.ts';
import { notCached } from './cache.ts';
import { type Checksum, download } from './download.ts';

/** Sets of directories have thousands of small files, each of which takes the hub a moment. */
const downloadsAtOnce = 8;
const path = z.string().refine((name) => !name.split('/').includes('..') && !name.startsWith('/'));
const revisionInfo = z.looseObject({
  sha: z.string().regex(/^[0-9a-f]{40}$/),
  siblings: z.array(
    z.looseObject({
      rfilename: path,
      size: z.number().nullish(),
      blobId: z.string().nullish(),
      lfs: z.looseObject({ sha256: z.string() }).nullish(),
    }),
  ),
});
type RevisionInfo = z.output<typeof revisionInfo>;
type HubLocation = Extract<DataSetLocation, { kind: 'hub' }>;

export interface Hub extends HubAccount {
  /** The part of the cache that holds the resolved revisions, and the files by commit. */
  readonly directory: string;
  readonly offline: boolean;
}

/**
 * Downloads the wanted files of a data set and returns their paths on this host. A branch is resolved to a commit once:
 * later runs read the same commit without the network. Throws TemperFailure UnknownTask.
 */
export async function fetchFromHub(
  hub: Hub,
  location: HubLocation,
  { wants, markerFile }: Pick<DataSetFormat, 'wants' | 'markerFile'>,
): Promise<readonly string[]> {
  const { sha, siblings } = await resolveRevision(hub, location);
  const below = siblings.filter(({ rfilename }) => isBelow(location.path, rfilename));
  const archives = below.filter(({ rfilename }) => rfilename === location.path || wants(rfilename));
  const wanted = archives.length > 0 || markerFile === undefined ? archives : ofTasks(below, markerFile);
  if (wanted.length === 0) {
    const found = below.slice(0, 8).map(({ rfilename }) => rfilename);
    throw new TemperFailure(
      'UnknownTask',
      `${nameOf(location)}: expected files of this format, got ${below.length} other files: ${found.join(', ')}`,
    );
  }
  const directory = join(hub.directory, location.id, sha);
  const sorted = wanted.toSorted((a, b) => (a.rfilename < b.rfilename ? -1 : 1));
  const queue = new PQueue({ concurrency: downloadsAtOnce });
  const files = await queue
    .addAll(
      sorted.map((file) => () => fetchFile(hub, location, { sha, file, target: join(directory, file.rfilename) })),
    )
    .finally(() => queue.clear());
  return wanted === archives ? files : [join(directory, location.path)];
}

/** Returns the files of the task directories, which have a file of the name `marker`. */
function ofTasks(files: RevisionInfo['siblings'], marker: string): RevisionInfo['siblings'] {
  const tasks = new Set(files.flatMap(({ rfilename }) => (basename(rfilename) === marker ? [dirname(rfilename)] : [])));
  const isOfTask = (path: string): boolean => tasks.has(path) || (path !== '.' && isOfTask(dirname(path)));
  return files.filter(({ rfilename }) => isOfTask(dirname(rfilename)));
}

interface WantedFile {
  readonly sha: string;
  readonly file: RevisionInfo['siblings'][number];
  readonly target: string;
}

async function fetchFile(hub: Hub, location: HubLocation, { sha, file, target }: WantedFile): Promise<string> {
  if (await exists(target)) return target;
  if (hub.offline) throw notCached(`${file.rfilename} of ${nameOf(location)}`, target);
  const name = file.rfilename.split('/').map(encodeURIComponent).join('/');
  await download(`${hub.url}/datasets/${location.id}/resolve/${sha}/${name}`, target, checksumOf(file), {
    headers: headersOf(hub),
    remedy: (status) => remedyOf(hub, location, status),
  });
  return target;
}

// A redirect to another server, where large files are, drops the header.
const headersOf = ({ token }: Hub): Readonly<Record<string, string>> =>
  token === null ? {} : { authorization: `Bearer ${token}` };

/** The advice for a user about an answer of the hub that refuses a data set. */
function remedyOf({ url, token }: Hub, { id }: HubLocation, status: number): string {
  const orPath = 'or download it and name it by its path';
  if (token === null)
    return `if it is private or gated, set HF_TOKEN to a token of an account that may read it, ${orPath}`;
  if (status === 401) return `the hub does not accept HF_TOKEN; set it to a valid token, ${orPath}`;
  return `the account of HF_TOKEN must be allowed to read it: see ${url}/datasets/${id}, ${orPath}`;
}

const isBelow = (folder: string, file: string): boolean =>
  folder === '' || file === folder || file.startsWith(`${folder.replace(/\/$/, '')}/`);

const nameOf = ({ id, revision }: HubLocation): string => `hub:${id}@${encodeURIComponent(revision)}`;

function checksumOf({ size, blobId, lfs }: RevisionInfo['siblings'][number]): Checksum | null {
  if (lfs) return { kind: 'sha256', digest: lfs.sha256 };
  return blobId && typeof size === 'number' ? { kind: 'git-blob', digest: blobId, size } : null;
}

async function resolveRevision(hub: Hub, location: HubLocation): Promise<RevisionInfo> {
  const cached = join(hub.directory, location.id, 'revisions', `${encodeURIComponent(location.revision)}.json`);
  const known = await readFile(cached, 'utf8').catch(() => null);
  if (known !== null) return revisionInfo.parse(JSON.parse(known));
  if (hub.offline) throw notCached(nameOf(location), cached);
  const url = `${hub.url}/api/datasets/${location.id}/revision/${encodeURIComponent(location.revision)}?blobs=true`;
  const reply = await httpCall({ method: 'GET', url, headers: headersOf(hub), timeoutMs: 60_000 }).catch(
    (cause: unknown) => {
      if (!(cause instanceof HttpUnreachable)) throw cause;
      throw new TemperFailure('UnknownTask', `${nameOf(location)}: ${cause.message}`, { cause });
    },
  );
  const parsed = revisionInfo.safeParse(reply.status === 200 ? jsonOf(reply) : null);
  if (!parsed.success) {
    const got = `HTTP status ${reply.status}: ${explanationOf(reply).slice(0, 200)}`;
    throw new TemperFailure(
      'UnknownTask',
      `${nameOf(location)}: expected a data set of ${hub.url}, got ${got}; ${remedyOf(hub, location, reply.status)}`,
    );
  }
  await mkdir(dirname(cached), { recursive: true });
  const draft = `${cached}.${process.pid}.part`;
  await writeFile(draft, JSON.stringify(parsed.data));
  await rename(draft, cached);
  return parsed.data;
}
