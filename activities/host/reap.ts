import type { Client } from '@temporalio/client';
import { attemptAll } from '../../infra/attempt-all.ts';
import { type Liveness, type ReapDecision, reap } from '../../infra/sandbox/reap.ts';
import type { SandboxInfo, SandboxKind, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { newestChain } from '../../infra/temporal/chain.ts';
import { atBoundary } from '../boundary.ts';
import type { ReaperActivities } from '../interfaces/host.ts';
import type { Host } from './host.ts';

/** The minimum age of an orphan, since a rollout that has just started may not be visible yet. */
const minAgeMs = 60_000;

export interface Reaped {
  readonly removed: readonly string[];
  /** Images that were evicted to free disk space. */
  readonly images: readonly string[];
}

export interface Reaper {
  readonly activities: ReaperActivities;
  /** Reaps outside an activity, at the start of a host worker. */
  reap(signal: AbortSignal): Promise<Reaped>;
}

/** The parts of a host that the reaper uses. */
interface Reapable extends Pick<Host, 'stack' | 'slots'> {
  readonly providers: { seen(): Promise<ReadonlyMap<SandboxKind, ReapableProvider>> };
}
type ReapableProvider = Pick<SandboxProvider, 'list' | 'remove' | 'clearLeftovers' | 'evictImages'>;

export function createReaper(host: Reapable, client: Pick<Client, 'workflow'>): Reaper {
  /**
   * Looks up the rollout of a sandbox. The label is the run id of the rollout's first execution; a reset closes that
   * execution although the rollout continues in another. Not found is `unknown`: it may be retention or another namespace,
   * and is no proof of an orphan.
   */
  async function livenessOf({ labels }: SandboxInfo): Promise<Liveness> {
    const query = `WorkflowType="rollout" AND RunId="${labels.rollout}"`;
    for await (const { workflowId, status } of client.workflow.list({ query })) {
      if (status.name === 'RUNNING') return 'live';
      const chain = await newestChain(client, workflowId);
      return chain?.running && chain.key === labels.rollout ? 'live' : 'over';
    }
    return 'unknown';
  }

  async function reapIn(provider: ReapableProvider, removed: string[], signal: AbortSignal): Promise<void> {
    const sandboxes = await host.slots.takeListed(() => provider.list(host.stack));
    const remove = async ({ name, labels }: ReapDecision): Promise<void> => {
      await provider.remove(name);
      if (labels.purpose === 'agent') host.slots.release(labels);
      removed.push(name);
    };
    await reap({ stack: host.stack, sandboxes, livenessOf, minAgeMs, remove }, signal);
  }

  /** Reaps everything. A sandbox that cannot be removed, for example because a disk is full, does not block the rest. */
  async function reapAll(signal: AbortSignal): Promise<Reaped> {
    const removed: string[] = [];
    const images: string[] = [];
    const providers = [...(await host.providers.seen()).values()];
    const steps = [
      ...providers.map((provider) => () => reapIn(provider, removed, signal)),
      ...providers.map((provider) => () => provider.clearLeftovers()),
      async () => host.slots.expire(Date.now()),
      ...providers.map((provider) => async () => images.push(...(await provider.evictImages(signal)))),
    ];
    await attemptAll<() => Promise<unknown>>(steps, 'all finished sandboxes to be removed', (step) => step());
    return { removed, images };
  }

  return { activities: { reapSandboxes: () => atBoundary(reapAll) }, reap: reapAll };
}
