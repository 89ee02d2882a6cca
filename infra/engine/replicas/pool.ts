import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../checks.ts';
import type { Engine, GenerateRequest } from '../engine.ts';
import { createWaitingQueue, type WaitingQueue } from './queue.ts';
import { createReplica, type Replica } from './replica.ts';
import type { SlotTable } from './slots.ts';

/** Replicas that are probed, and the requests that wait for a slot at one of them. */
export interface Pool {
  readonly replicas: readonly Replica[];
  /** Returns the replicas that may receive requests: those in service that have the newest weights. */
  eligible(): readonly Replica[];
  /** Returns the newest published version; null before the first publication. */
  newestVersion(): number | null;
  /** Takes a slot at once; null when none is free, or when other requests wait for one. */
  takeSlot(request: GenerateRequest): EngineSlot | null;
  /** Rejects with EngineUnavailable when a new probe of all replicas finds none that is eligible. */
  waitForSlot(request: GenerateRequest, signal: AbortSignal): Promise<EngineSlot>;
  probeAll(): Promise<void>;
  close(): Promise<void>;
}

export interface EngineSlot {
  readonly replica: Replica;
  /** Repeatable. */
  release(): void;
}

export interface PoolOptions {
  readonly slots: SlotTable;
  readonly probeMs: number;
  readonly probeTimeoutMs: number;
  readonly onChange: (replica: Replica) => void;
}

export function createPool(engines: readonly Engine[], options: PoolOptions): Pool {
  return new ProbedPool(engines, options);
}

class ProbedPool implements Pool {
  readonly replicas: readonly Replica[];
  readonly #probeMs: number;
  readonly #closing = new AbortController();
  readonly #queue: WaitingQueue<GenerateRequest, EngineSlot> = createWaitingQueue();
  readonly #probing: readonly Promise<void>[];
  readonly #stopListening: readonly (() => void)[];
  #isProbingForQueue = false;

  constructor(engines: readonly Engine[], { probeMs, onChange, ...options }: PoolOptions) {
    this.#probeMs = probeMs;
    this.replicas = engines.map((engine) =>
      createReplica(engine, {
        ...options,
        closing: this.#closing.signal,
        isReplaceable: (replica) => this.eligible().some((other) => other !== replica && other.answers),
        onRollback: () => {
          for (const replica of this.replicas) if (!replica.inService) replica.forgetVersion();
        },
        onChange: (replica) => {
          onChange(replica);
          this.#assignSlots();
        },
      }),
    );
    this.#stopListening = this.replicas.map(({ slots }) => slots.onRelease(() => this.#assignSlots()));
    this.#probing = this.replicas.map((replica) => this.#probeRepeatedly(replica));
  }

  async #probeRepeatedly(replica: Replica): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#probe(replica);
      await sleep(this.#probeMs, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  async #probe(replica: Replica): Promise<void> {
    await replica.probe();
    this.#assignSlots();
  }

  async probeAll(): Promise<void> {
    await Promise.all(this.replicas.map((replica) => this.#probe(replica)));
  }

  eligible(): readonly Replica[] {
    const newest = this.newestVersion();
    return this.replicas.filter(({ inService, version }) => inService && version === newest);
  }

  /** Counts replicas that are out of service, too: what they served was published, and older weights cannot stand in for it. */
  newestVersion(): number | null {
    const versions = this.replicas.flatMap(({ version }) => version ?? []);
    return versions.length === 0 ? null : Math.max(...versions);
  }

  takeSlot(request: GenerateRequest): EngineSlot | null {
    if (this.#closing.signal.aborted) throw closed();
    return this.#queue.length === 0 ? this.#findSlot(request) : null;
  }

  async waitForSlot(request: GenerateRequest, signal: AbortSignal): Promise<EngineSlot> {
    const slot = this.#queue.wait(request, signal);
    // A request that leaves the queue may have blocked a smaller one behind it.
    slot.catch(() => this.#assignSlots());
    this.#assignSlots();
    return slot;
  }

  #findSlot(request: GenerateRequest): EngineSlot | null {
    for (const replica of rankBySession(this.eligible(), request.session ?? request.requestId, ({ url }) => url)) {
      const releaseSlot = replica.slots.take(request);
      if (releaseSlot === null) continue;
      return { replica, release: releaseSlot };
    }
    return null;
  }

  #assignSlots(): void {
    this.#queue.assign((request) => this.#findSlot(request));
    if (this.#queue.length > 0 && this.eligible().length === 0 && !this.#isProbingForQueue) void this.#probeForQueue();
  }

  /** Probes all replicas out of turn, since one may be back already. Rejects all waiting requests when none is. */
  async #probeForQueue(): Promise<void> {
    this.#isProbingForQueue = true;
    await this.probeAll();
    this.#isProbingForQueue = false;
    if (this.eligible().length === 0) this.#queue.rejectAll(this.#noneEligible());
  }

  #noneEligible(): Error {
    const newest = this.newestVersion();
    const reasons = this.replicas.map(({ url, inService, version, reason }) =>
      inService ? `${url} serves version ${version}, expected ${newest}` : `${url} is out of service: ${reason}`,
    );
    return unavailable(`no engine is in service: ${reasons.join('; ')}`);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const stop of this.#stopListening) stop();
    this.#queue.rejectAll(closed());
    await Promise.all(this.#probing);
  }
}

/**
 * Returns the order in which a session tries replicas, by rendezvous hashing. Every process computes the same order, and a
 * replica that leaves or joins moves no session but its own.
 */
export function rankBySession<Item>(
  items: readonly Item[],
  session: string,
  nameOf: (item: Item) => string,
): readonly Item[] {
  if (items.length <= 1) return items;
  return items
    .map((item) => ({
      item,
      weight: createHash('sha256')
        .update(`${session}\n${nameOf(item)}`)
        .digest('hex'),
    }))
    .sort((a, b) => (a.weight < b.weight ? 1 : -1))
    .map(({ item }) => item);
}

function closed(): Error {
  return unavailable('the engines are closed: this gateway is stopping; try again');
}
