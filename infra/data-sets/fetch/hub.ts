import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { explanationOf, HttpUnreachable, httpCall, jsonOf } from '../../http/client.ts';
import type { DataSetPlace } from './address.ts';
import { type Checksum, download, isThere } from './download.ts';

/** Where hub ids are looked up. */
export const hubUrl = 'https://huggingface.co';

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
type HubPlace = Extract<DataSetPlace, { kind: 'hub' }>;

export interface Hub {
  readonly url: string;
  /** Below it: what revisions meant when they were first asked for, and files by commit. */
  readonly directory: string;
  readonly offline: boolean;
}

/**
 * The files of a data set on the hub that are wanted, on this host. What a branch means is settled when it is first asked for:
 * later runs read the same commit, without the network. Throws TemperFailure UnknownTask.
 */
export async function fetchFromHub(
  hub: Hub,
  place: HubPlace,
  wants: (path: string) => boolean,
): Promise<readonly string[]> {
  const { sha, siblings } = await revisionOf(hub, place);
  const below = siblings.filter(({ rfilename }) => isBelow(place.path, rfilename));
  const wanted = below.filter(({ rfilename }) => rfilename === place.path || wants(rfilename));
  if (wanted.length === 0) {
    const there = below.slice(0, 8).map(({ rfilename }) => rfilename);
    throw new TemperFailure(
      'UnknownTask',
      `${nameOf(place)}: expected files of this format, got ${below.length} others: ${there.join(', ')}`,
    );
  }
  const files: string[] = [];
  for (const file of wanted.toSorted((a, b) => (a.rfilename < b.rfilename ? -1 : 1))) {
    const target = join(hub.directory, place.id, sha, file.rfilename);
    const url = `${hub.url}/datasets/${place.id}/resolve/${sha}/${file.rfilename.split('/').map(encodeURIComponent).join('/')}`;
    if (!(await isThere(target))) {
      if (hub.offline) throw missing(`${file.rfilename} of ${nameOf(place)}`, target);
      await download(url, target, checksumOf(file));
    }
    files.push(target);
  }
  return files;
}

/** What to do where the network may not be used. */
export const missing = (what: string, target: string): TemperFailure =>
  new TemperFailure(
    'UnknownTask',
    `${what}: expected it in the cache of this host (${target}), got nothing, and downloads are off here; run \`temper tasks ls\` on this host with the network, or \`temper tasks add\` to put the tasks into the store`,
  );

const isBelow = (folder: string, file: string): boolean =>
  folder === '' || file === folder || file.startsWith(`${folder.replace(/\/$/, '')}/`);

const nameOf = ({ id, revision }: HubPlace): string => `hub:${id}@${revision}`;

function checksumOf({ size, blobId, lfs }: RevisionInfo['siblings'][number]): Checksum | null {
  if (lfs) return { kind: 'sha256', digest: lfs.sha256 };
  return blobId && typeof size === 'number' ? { kind: 'git-blob', digest: blobId, size } : null;
}

async function revisionOf(hub: Hub, place: HubPlace): Promise<RevisionInfo> {
  const kept = join(hub.directory, place.id, 'revisions', `${place.revision}.json`);
  const known = await readFile(kept, 'utf8').catch(() => null);
  if (known !== null) return revisionInfo.parse(JSON.parse(known));
  if (hub.offline) throw missing(nameOf(place), kept);
  const url = `${hub.url}/api/datasets/${place.id}/revision/${encodeURIComponent(place.revision)}?blobs=true`;
  const reply = await httpCall({ method: 'GET', url, timeoutMs: 60_000 }).catch((cause: unknown) => {
    if (!(cause instanceof HttpUnreachable)) throw cause;
    throw new TemperFailure('UnknownTask', `${nameOf(place)}: ${cause.message}`, { cause });
  });
  const parsed = revisionInfo.safeParse(reply.status === 200 ? jsonOf(reply) : null);
  if (!parsed.success) {
    const got = `HTTP status ${reply.status}: ${explanationOf(reply).slice(0, 200)}`;
    const remedy = 'what needs an account has to be downloaded and named by its path';
    throw new TemperFailure(
      'UnknownTask',
      `${nameOf(place)}: expected a data set of ${hub.url}, got ${got}; ${remedy}`,
    );
  }
  await mkdir(dirname(kept), { recursive: true });
  const draft = `${kept}.${process.pid}.part`;
  await writeFile(draft, JSON.stringify(parsed.data));
  await rename(draft, kept);
  return parsed.data;
}
