import type { Client } from '@temporalio/client';
import { blobGraceMs, type RetentionContext } from '../infra/retention/category.ts';
import { type CollectOptions, collect } from '../infra/retention/collect.ts';
import { createKnowledge } from '../infra/retention/knowledge.ts';
import { categories } from '../infra/retention/table.ts';
import type { Config } from '../infra/settings/config.ts';
import { openObjects } from '../infra/store/shared-state.ts';
import { requireUsable } from '../infra/store/usable.ts';

export interface RetentionPass extends CollectOptions, Pick<RetentionContext, 'signal' | 'note'> {
  /** The age from which on recorded outcomes and records go as well, in milliseconds; null keeps them all. */
  readonly olderThanMs: number | null;
  /** Connects to the stack's Temporal server. It is called once, and only if something depends on the answer. */
  connect(): Promise<Client>;
}

/** Makes one pass of retention over what a stack's processes share, its home and the cache. */
export async function makeRetentionPass(config: Config, pass: RetentionPass): ReturnType<typeof collect> {
  const { olderThanMs, connect, signal, note } = pass;
  const objects = await openObjects(config.store);
  // A clock that differs from the bucket's would take what has just been written for old. A home may be full, which is no reason.
  if (config.store.kind !== 'directory' && !pass.dryRun) await requireUsable(objects);
  const nowMs = Date.now();
  const cutoffMs = olderThanMs === null ? null : nowMs - olderThanMs;
  return collect(
    config.home,
    categories,
    {
      ...retentionPaths(config),
      objects,
      nowMs,
      cutoffMs,
      graceMs: blobGraceMs,
      knowledge: createKnowledge(connect),
      signal,
      note,
    },
    pass,
  );
}

/** The directories of a stack that retention works on. */
export const retentionPaths = ({
  paths,
  cacheDir,
  checkpoints,
}: Config): Pick<RetentionContext, 'paths' | 'cacheDir' | 'checkpoints'> => ({ paths, cacheDir, checkpoints });
