import type { Client } from '@temporalio/client';
import { attemptAll } from '../../infra/attempt-all.ts';
import type { EgressPlaces } from '../../infra/egress/places.ts';
import { isOfEarlierLife, isOfHost } from '../../infra/hosts/token.ts';
import { createSightings, type Liveness, type ReapDecision, reap, type Sightings } from '../../infra/sandbox/reap.ts';
import type { SandboxInfo, SandboxKind, SandboxLabels, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { newestChain } from '../../infra/temporal/chain.ts';
import { isClosedStatus } from '../../workflows/algorithms/rollout-end.ts';
import { isRemote } from '../../workflows/contracts/sandbox-kinds.ts';
import { atBoundary } from '../boundary.ts';
import type { ReaperActivities } from '../interfaces/host.ts';
import type { Host } from './host.ts';

/** The minimum age of an orphan, since a rollout that has just started may not be visible yet. */
const minAgeMs = 60_000;
/** The minimum age of files about sandboxes whose rollouts are unknown. */
const leftoverAgeMs = 86_400_000;
/** Rollouts per query to the server, whose length is limited. */
const askedAtOnce = 100;

export interface Reaped {
  readonly removed: readonly string[];
  /** Sandboxes that look orphaned and are removed once the next look confirms it. */
  readonly suspected: readonly string[];
  /** Images that were evicted to free disk space. */
  readonly images: readonly string[];
}

export interface Reaper {
  readonly activities: ReaperActivities;
  /** Reaps outside an activity, at the start of a host worker. */
  reap(signal: AbortSignal): Promise<Reaped>;
}

/** The parts of a host that the reaper uses. */
interface Reapable extends Pick<Host, 'stack' | 'fence' | 'slots' | 'sharesJournals'> {
  readonly results: Pick<Host['results'], 'list' | 'remove'>;
  readonly network: { readonly places: Pick<EgressPlaces, 'clear'> };
  readonly providers: { seen(): Promise<ReadonlyMap<SandboxKind, ReapableProvider>> };
}
type ReapableProvider = Pick<SandboxProvider, 'list' | 'remove' | 'renew' | 'clearLeftovers' | 'evictImages'>;

/** The names that a pass collects. */
interface Found {
  readonly removed: string[];
  readonly suspected: string[];
  /** All sandboxes that there are. */
  readonly listed: string[];
}

/** Creates the reaper of a host. It remembers what it has seen; `now` is a clock that never jumps. */
export function createReaper(host: Reapable, client: Pick<Client, 'workflow'>, now?: () => number): Reaper {
  const seen = new Map<SandboxKind, Sightings>();
  const livenessOf = livenessAt(client);

  /** Frees the expired slots of rollouts that were placed and never provisioned, unless the rollout still waits for it. */
  async function expireSlots(): Promise<void> {
    const expired = host.slots.expired(Date.now());
    const liveness = await livenessOf([...new Set(expired.map(({ rollout }) => rollout))]);
    for (const epoch of expired) if (liveness.get(epoch.rollout) !== 'live') host.slots.release(epoch);
  }

  /** Removes the kept results of rollouts that are over, and of those that have been unknown for long. */
  async function clearResults(): Promise<void> {
    const kept = await host.results.list(minAgeMs);
    const liveness = await livenessOf([...new Set(kept.map(({ rollout }) => rollout))]);
    for (const { ageMs, ...epoch } of kept) {
      if (liveness.get(epoch.rollout) === 'over' || ageMs >= leftoverAgeMs) await host.results.remove(epoch);
    }
  }

  async function reapIn(
    kind: SandboxKind,
    provider: ReapableProvider,
    { removed, suspected, listed }: Found,
  ): Promise<void> {
    const sightings = seen.get(kind) ?? createSightings(now);
    seen.set(kind, sightings);
    // All hosts list the sandboxes of a server elsewhere, and those of one machine the containers of its Docker. A sandbox that
    // was adopted has its slot from the stage that works in it.
    const isOwn = ({ fence }: SandboxLabels): boolean =>
      fence === undefined || (isRemote(kind) ? fence === host.fence() : isOfHost(fence, host.fence()));
    const sandboxes = await host.slots.takeListed(() => provider.list(host.stack), isOwn);
    listed.push(...sandboxes.map(({ name }) => name));
    const remove = async ({ name, labels }: ReapDecision): Promise<void> => {
      await provider.remove(name);
      if (labels.purpose === 'agent') host.slots.release(labels);
      removed.push(name);
    };
    const isVoid = voidAmong(sandboxes, { host, kind });
    const renew = provider.renew?.bind(provider);
    const request = { stack: host.stack, sandboxes, livenessOf, minAgeMs, isVoid, sightings, remove, renew };
    suspected.push(...(await reap(request)).suspected);
  }

  /** Reaps everything. A sandbox that cannot be removed, for example because a disk is full, does not block the rest. */
  async function reapAll(signal: AbortSignal): Promise<Reaped> {
    const found: Found = { removed: [], suspected: [], listed: [] };
    const images: string[] = [];
    const kinds = await host.providers.seen();
    const providers = [...kinds.values()];
    const steps = [
      ...[...kinds].map(
        ([kind, provider]) =>
          () =>
            reapIn(kind, provider, found),
      ),
      ...providers.map((provider) => () => provider.clearLeftovers()),
      expireSlots,
      clearResults,
      ...providers.map((provider) => async () => images.push(...(await provider.evictImages(signal)))),
    ];
    await attemptAll<() => Promise<unknown>>(steps, 'all finished sandboxes to be removed', (step) => step());
    await host.network.places.clear(found.listed, Date.now() - leftoverAgeMs);
    const { removed, suspected } = found;
    return { removed, suspected, images };
  }

  return { activities: { reapSandboxes: () => atBoundary(reapAll) }, reap: reapAll };
}

type Rollouts = Pick<Client, 'workflow'>;

/**
 * Returns a function that looks rollouts up. Each is named by the run id of its first execution; a reset closes that execution
 * although the rollout continues in another. One that is not found is left out: it may be retention or another namespace, and
 * is no proof of an orphan.
 */
const livenessAt =
  (client: Rollouts) =>
  async (rollouts: readonly string[]): Promise<ReadonlyMap<string, Liveness>> => {
    const found = new Map<string, Liveness>();
    for (let first = 0; first < rollouts.length; first += askedAtOnce) {
      const ids = rollouts.slice(first, first + askedAtOnce).map((rollout) => `"${rollout}"`);
      const query = `WorkflowType="rollout" AND RunId IN (${ids.join(', ')})`;
      for await (const { workflowId, runId, status } of client.workflow.list({ query })) {
        const running = !isClosedStatus(status.name) || (await continuesAfterReset(client, workflowId, runId));
        found.set(runId, running ? 'live' : 'over');
      }
    }
    return found;
  };

async function continuesAfterReset(client: Rollouts, workflowId: string, rollout: string): Promise<boolean> {
  const chain = await newestChain(client, workflowId);
  return chain?.running === true && chain.key === rollout;
}

interface Driver {
  readonly host: Pick<Host, 'fence' | 'sharesJournals'>;
  readonly kind: SandboxKind;
}

/** Tells which sandboxes no rollout uses any more, although it may still run. */
function voidAmong(sandboxes: readonly SandboxInfo[], { host, kind }: Driver): (labels: SandboxLabels) => boolean {
  const isSuperseded = supersededAmong(sandboxes);
  return (labels) => {
    const mayOutlive = isRemote(kind) && labels.purpose === 'agent';
    if (mayOutlive && isSuperseded(labels)) return true;
    // One of an earlier life of this host may have been adopted, or may still be.
    return !(mayOutlive && host.sharesJournals) && isOfEarlierLife(labels.fence, host.fence());
  };
}

/** Tells which agents' sandboxes their rollouts have left, since they have one of a later epoch. */
function supersededAmong(sandboxes: readonly SandboxInfo[]): (labels: SandboxLabels) => boolean {
  const newest = new Map<string, number>();
  for (const { labels } of sandboxes) {
    if (labels.purpose === 'agent') newest.set(labels.rollout, Math.max(labels.epoch, newest.get(labels.rollout) ?? 0));
  }
  return ({ rollout, epoch }) => epoch < (newest.get(rollout) ?? 0);
}
