import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { unavailable } from '../checks.ts';
import type { Engine, EngineHealth, GenerateEvent, GenerateRequest } from '../engine.ts';
import type { RequestSlots, SlotTable } from './slots.ts';

/** One of several engines, with its last known state. */
export interface Replica {
  readonly url: string;
  readonly slots: RequestSlots;
  /** Whether the last probe found it ready and no generation has failed there since. */
  readonly inService: boolean;
  /** Whether the replica has answered every probe since its last good one. */
  readonly answers: boolean;
  /** The reason why it is out of service. */
  readonly reason: string;
  /** The result of the last good probe; null before the first. */
  readonly health: EngineHealth | null;
  /** The version that the replica was last known to serve; kept while it is out of service. */
  readonly version: number | null;
  /** Reads its health, once for all callers at the same time. Never rejects. */
  probe(): Promise<void>;
  /** Drops the version that it served: its weights were rolled back, or belong to a run that is over. */
  forgetVersion(): void;
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<GenerateEvent>;
}

export interface ReplicaOptions {
  /** The slots of the servers, which the replicas of other policies share. */
  readonly slots: SlotTable;
  /** A probe that takes longer counts as missed. */
  readonly probeTimeoutMs: number;
  readonly closing: AbortSignal;
  /** Called when the replica comes into service, serves another version, or is out of service for a new reason. */
  readonly onChange: (replica: Replica) => void;
  /** Whether another replica is eligible and answers. */
  readonly isReplaceable: (replica: Replica) => boolean;
  /** Called when the replica serves an older version than before: the versions of replicas out of service no longer count. */
  readonly onRollback: () => void;
}

/** A request that a replica works on. */
interface Running {
  readonly request: GenerateRequest;
  /** The time of its last event, or of its start. */
  lastMs: number;
  /** Whether it was asked since then if the engine is paused. */
  looked: boolean;
}

/** The time without a token after which a request may be held by a pause, and the interval at which that is looked for. */
const silentMs = 500;
const lookEveryMs = 250;
/** A single probe may get lost; a replica that misses two in a row leaves service. */
const missesToLeave = 2;
/** Connections to a machine that vanished stay open and silent: after this many missed probes its requests are aborted. */
const missesToAbort = 5;

export function createReplica(engine: Engine, options: ReplicaOptions): Replica {
  return new ProbedReplica(engine, options);
}

class ProbedReplica implements Replica {
  readonly slots: RequestSlots;
  readonly #engine: Engine;
  readonly #options: ReplicaOptions;
  /** The requests that it works on, each with what aborts it. */
  readonly #running = new Map<AbortController, Running>();
  /** Looks for requests that a pause may hold, while any runs. */
  #looks: NodeJS.Timeout | undefined;
  #inService = false;
  #reason = 'it has not answered yet';
  #health: EngineHealth | null = null;
  #version: number | null = null;
  #misses = 0;
  #probe: Promise<void> | null = null;

  constructor(engine: Engine, options: ReplicaOptions) {
    this.#engine = engine;
    this.#options = options;
    this.slots = options.slots.of(engine.url, () => this.#health?.capacity);
  }

  get url(): string {
    return this.#engine.url;
  }
  get inService(): boolean {
    return this.#inService;
  }
  get answers(): boolean {
    return this.#misses === 0;
  }
  get reason(): string {
    return this.#reason;
  }
  get health(): EngineHealth | null {
    return this.#health;
  }
  get version(): number | null {
    return this.#version;
  }

  probe(): Promise<void> {
    this.#probe ??= this.#readHealth().finally(() => {
      this.#probe = null;
    });
    return this.#probe;
  }

  async #readHealth(): Promise<void> {
    const { probeTimeoutMs, closing } = this.#options;
    const timeout = AbortSignal.timeout(probeTimeoutMs);
    try {
      const health = await this.#engine.health(AbortSignal.any([timeout, closing]));
      if (health.ready) this.#probeSucceeded(health);
      else this.#probeMissed('it reports that it is not ready');
    } catch (error) {
      if (closing.aborted) return;
      if (timeout.aborted) this.#probeTimedOut(`no answer to a probe within ${probeTimeoutMs} ms`);
      else this.#probeMissed(errorMessage(error));
    }
  }

  #probeSucceeded(health: EngineHealth): void {
    const changed = !this.#inService || health.version !== this.#version;
    const isRollback = health.version !== null && health.version < (this.#version ?? 0);
    this.#health = health;
    this.#version = health.version;
    this.#misses = 0;
    this.#inService = true;
    // A paused engine holds its requests without a word.
    if (health.paused) for (const { request } of this.#running.values()) request.onHeld?.(true);
    if (isRollback) this.#options.onRollback();
    if (changed) this.#options.onChange(this);
  }

  forgetVersion(): void {
    this.#version = null;
  }

  #probeMissed(reason: string): void {
    this.#misses += 1;
    if (this.#misses >= missesToLeave || !this.#inService) this.#leaveService(reason);
  }

  /**
   * Keeps a silent replica in service until another one answers: it may be loading weights for minutes, and so may all of
   * them.
   */
  #probeTimedOut(reason: string): void {
    if (this.#inService && !this.#options.isReplaceable(this)) {
      this.#misses += 1;
      return;
    }
    this.#probeMissed(reason);
    if (this.#misses < missesToAbort) return;
    for (const run of this.#running.keys()) run.abort(unavailable(`${this.url}: aborted: ${reason}`));
  }

  #leaveService(reason: string): void {
    const changed = this.#inService || this.#reason !== reason;
    this.#reason = reason;
    this.#inService = false;
    if (changed) this.#options.onChange(this);
  }

  async *generate(request: GenerateRequest, signal: AbortSignal): AsyncGenerator<GenerateEvent> {
    signal.throwIfAborted();
    const run = new AbortController();
    const stop = (): void => run.abort(signal.reason);
    signal.addEventListener('abort', stop);
    const running: Running = { request, lastMs: performance.now(), looked: false };
    this.#running.set(run, running);
    this.#looks ??= setInterval(() => this.#lookForPause(), lookEveryMs).unref();
    try {
      for await (const event of this.#engine.generate(request, run.signal)) {
        running.lastMs = performance.now();
        running.looked = false;
        this.#noteVersion(event);
        yield event;
      }
    } catch (error) {
      if (!signal.aborted && isUnavailable(error)) this.#leaveService(errorMessage(error));
      throw error;
    } finally {
      this.#running.delete(run);
      if (this.#running.size === 0) {
        clearInterval(this.#looks);
        this.#looks = undefined;
      }
      signal.removeEventListener('abort', stop);
    }
  }

  /** Asks whether the engine is paused, if requests have got nothing for a while: probes would miss most short pauses. */
  #lookForPause(): void {
    const now = performance.now();
    const silent = [...this.#running.values()].filter(({ lastMs, looked }) => !looked && now - lastMs >= silentMs);
    if (silent.length === 0) return;
    for (const running of silent) running.looked = true;
    // An engine that does not answer is the next probe's subject.
    const { closing, probeTimeoutMs } = this.#options;
    const signal = AbortSignal.any([AbortSignal.timeout(probeTimeoutMs), closing]);
    const asked = this.#engine.health(signal).catch(() => null);
    void asked.then((health) => {
      if (health?.paused !== true) return;
      for (const { request, looked } of silent) if (looked) request.onHeld?.(true);
    });
  }

  /** Takes the version from sampled tokens, which may show a new one before the next probe does. */
  #noteVersion({ versions }: GenerateEvent): void {
    const version = versions?.at(-1)?.version;
    if (version === undefined || version <= (this.#version ?? -1)) return;
    this.#version = version;
    if (this.#inService) this.#options.onChange(this);
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof TemperFailure && (error.type === 'EngineUnavailable' || error.type === 'EngineQuarantined');
}
