import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from './checks.ts';
import type { Engine, EngineHealth, GenerateEvent, GenerateRequest } from './engine.ts';
import { createPool, type EngineSlot, type Pool } from './replicas/pool.ts';
import type { SlotTable } from './replicas/slots.ts';

export interface ReplicasOptions {
  /** The slots of the servers, which several policies may share. */
  readonly slots: SlotTable;
  readonly probeMs?: number;
  /** A probe that takes longer counts as missed. */
  readonly probeTimeoutMs?: number;
  /** Interval of the empty events that a waiting request yields. */
  readonly keepAliveMs?: number;
  /** Called when a replica comes into service, serves another version, or is out of service for a new reason. */
  readonly onEvent?: (event: ReplicaEvent) => void;
}

export interface ReplicaEvent {
  readonly url: string;
  readonly inService: boolean;
  readonly version: number | null;
  /** Present only when the replica is out of service. */
  readonly reason?: string;
}

/** Several replicas of one engine, as one engine. */
export interface Replicas extends Engine {
  /** Ends the probes, and refuses waiting requests as unavailable. */
  close(): Promise<void>;
}

/**
 * Spreads sessions over replicas. A session stays on its replica while that is in service, serves the newest version and has
 * a free slot; otherwise it uses the next replica in an order of its own. A replica leaves service when a generation there
 * fails as unavailable or when it misses probes, and returns with the next good probe. A request fails as unavailable only
 * when no replica is in service. When all slots are taken it waits, and yields an event without tokens now and then, since a
 * full engine must not look like a silent one.
 */
export function createReplicas(engines: readonly Engine[], options: ReplicasOptions): Replicas {
  const { probeMs = 2_000, probeTimeoutMs = 5_000, keepAliveMs = 30_000, onEvent = () => {}, slots } = options;
  const pool = createPool(engines, {
    slots,
    probeMs,
    probeTimeoutMs,
    onChange: ({ url, inService, version, reason }) =>
      onEvent({ url, inService, version, ...(inService ? {} : { reason }) }),
  });
  return {
    url: pool.replicas.map(({ url }) => url).join(', '),

    async *generate(request, signal) {
      const slot = pool.takeSlot(request) ?? (yield* queued(pool, request, { keepAliveMs, signal }));
      try {
        request.onVersion?.(slot.replica.version);
        yield* slot.replica.generate(request, signal);
      } finally {
        slot.release();
      }
    },

    async health(signal) {
      // The caller wants to know what is served now; the last probe may be older than the last publication.
      await pool.probeAll();
      signal?.throwIfAborted();
      return healthOf(pool);
    },

    async publish(publication, signal) {
      await Promise.all(engines.map((engine) => engine.publish(publication, signal)));
      await pool.probeAll();
    },

    pinVersion: async (version, signal) =>
      (await Promise.all(engines.map((engine) => engine.pinVersion(version, signal)))).every(Boolean),

    close: () => pool.close(),
  };
}

/** Waits for a slot, and says so to the request. */
async function* queued(
  pool: Pool,
  request: GenerateRequest,
  { keepAliveMs, signal }: { readonly keepAliveMs: number; readonly signal: AbortSignal },
): AsyncGenerator<GenerateEvent, EngineSlot> {
  request.onHeld?.(true);
  const slot = yield* waitForSlot(pool.waitForSlot(request, signal), keepAliveMs);
  request.onHeld?.(false);
  return slot;
}

/** Yields keep-alive events until a slot is granted. A caller that gives up while queued releases its slot when it is granted. */
async function* waitForSlot(
  granting: Promise<EngineSlot>,
  keepAliveMs: number,
): AsyncGenerator<GenerateEvent, EngineSlot> {
  let isTaken = false;
  try {
    yield* keepAlive(granting, keepAliveMs);
    const slot = await granting;
    isTaken = true;
    return slot;
  } finally {
    if (!isTaken) {
      void granting.then(
        (slot) => slot.release(),
        () => {},
      );
    }
  }
}

async function* keepAlive(granting: Promise<EngineSlot>, everyMs: number): AsyncGenerator<GenerateEvent> {
  const settled = new AbortController();
  granting.then(
    () => settled.abort(),
    () => settled.abort(),
  );
  for (;;) {
    await sleep(everyMs, undefined, { signal: settled.signal, ref: false }).catch(() => {});
    if (settled.signal.aborted) return;
    yield { tokenIds: [], logprobs: [] };
  }
}

function healthOf(pool: Pool): EngineHealth {
  const eligible = pool.eligible();
  const known = pool.replicas.flatMap(({ health }) => health ?? []);
  if (known.length === 0) {
    const reasons = pool.replicas.map(({ url, reason }) => `${url}: ${reason}`).join('; ');
    throw unavailable(`no engine has reported its health yet: ${reasons}`);
  }
  const lengths = known.flatMap(({ contextLength }) => contextLength ?? []);
  return {
    ready: eligible.length > 0,
    paused: eligible.length > 0 && eligible.every(({ health }) => health?.paused === true),
    version: pool.newestVersion(),
    // A request may be sent to any of them, so a request can name only the versions that all of them have.
    versions: common(eligible.map(({ health, version }) => health?.versions ?? (version === null ? [] : [version]))),
    // A conversation must fit on whichever replica receives it.
    contextLength: lengths.length === 0 ? null : Math.min(...lengths),
  };
}

const common = ([first = [], ...others]: readonly (readonly number[])[]): readonly number[] =>
  first.filter((version) => others.every((other) => other.includes(version)));
