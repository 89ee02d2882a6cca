import { z } from 'zod';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { Diff } from '../../workflows/contracts/diff.ts';
import type { Snapshot } from '../../workflows/contracts/snapshot.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import type { SandboxKind } from '../sandbox/sandbox.ts';
import { sha256 } from '../store/files.ts';
import type { Records } from '../store/records.ts';
import type { Store } from '../store/store.ts';
import { isStored } from './snapshot/archive.ts';
import { graderVersion } from './version.ts';

/** Keeps verdicts by what they depend on, but only those that another evaluation would presumably repeat. */
export interface VerdictCache {
  /** Returns the verdict of a key; null if there is none, or if the store has lost its log. */
  find(key: string): Promise<Verdict | null>;
  /** Keeps a verdict, unless it depends on limits of time, memory or output, or on a network. */
  keep(key: string, verdict: Verdict): Promise<void>;
}

export interface VerdictSubject {
  readonly diff: Diff;
  /** The answer that the agent recorded; absent without one. */
  readonly answer?: BlobRef;
  readonly task: Task;
  readonly snapshot?: Snapshot;
  /** Identifies the image by its content, since its name may mean another one later. */
  readonly imageId: string;
  /** The kind of sandbox: a local one has the host's programs, whatever the image. */
  readonly kind: SandboxKind;
  readonly timeoutMs: number;
}

/** Returns a digest of everything that decides on a verdict; null for a diff or snapshot that was too large to keep, and is empty. */
export function verdictKey(
  { diff, answer, task, snapshot, imageId, kind, timeoutMs }: VerdictSubject,
  grader = graderVersion,
): string | null {
  if (snapshot === undefined ? diff.tooLarge : !isStored(snapshot)) return null;
  const network = JSON.stringify(task.testNetwork ?? null);
  const carried = snapshot === undefined ? [] : ['snapshot', ...snapshot.parts];
  const { bundle, step } = task;
  const parts = [diff.patch.digest, diff.baseCommit, bundle.digest, imageId, kind, String(timeoutMs), network, grader];
  if (step !== undefined) parts.push(`step ${step}`);
  if (answer !== undefined) parts.push(answer.digest);
  return sha256([...parts, ...carried].join('\n'));
}

/** The kinds that do not depend on limits, which another evaluation need not reach. */
const kept: readonly Verdict['kind'][] = ['graded', 'patch-failed'];

const stored = z.looseObject({
  kind: z.enum(['graded', 'patch-failed']),
  log: z.looseObject({ digest: z.string() }),
  tests: z.looseObject({ digest: z.string() }).optional(),
});

/** Creates a cache with one record per verdict, in folders by the first two digits of the key. */
export function createVerdictCache({
  records,
  store,
}: {
  readonly records: Records;
  readonly store: Store;
}): VerdictCache {
  const folderOf = (key: string): string => key.slice(0, 2);
  return {
    async find(key) {
      const found = stored.safeParse(await records.find(folderOf(key), key));
      if (!found.success) return null;
      const { log, tests } = found.data;
      const blobs = [log, ...(tests === undefined ? [] : [tests])];
      const there = await Promise.all(blobs.map(({ digest }) => store.has(digest)));
      if (!there.every(Boolean)) return null;
      await records.renew(folderOf(key), key);
      return { ...(found.data as unknown as Verdict), cached: true };
    },
    async keep(key, verdict) {
      const limited = verdict.flags?.some(({ trick }) => trick === 'limit') ?? false;
      // What another host answers may be something else the next time.
      const downloaded = (verdict.network?.requests ?? 0) > 0;
      if (kept.includes(verdict.kind) && !limited && !downloaded) await records.write(folderOf(key), key, verdict);
    },
  };
}
