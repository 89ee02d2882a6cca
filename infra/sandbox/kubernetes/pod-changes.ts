import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Informer, V1Pod } from '@kubernetes/client-node';
import type { Cluster } from './client.ts';

/** The label with the process that has created a Pod and watches it. */
const creatorLabel = 'temper.creator';
/** The time after which a Pod is read although the watch says nothing, which does not prove that nothing has happened. */
const silentMs = 10_000;
/** The pauses between two looks at a Pod that is not watched. */
const firstPauseMs = 50;
const longestPauseMs = 1_000;
/** The pause before a watch that failed begins again. */
const againMs = 2_000;
/** The time for which the watch continues after the last Pod that was followed. */
const idleMs = 20_000;

/**
 * The changes of the Pods that this process has created, by one watch for all of them, which runs only while a caller follows a
 * Pod. A watch that fails costs nothing but calls, because its followers read their Pods instead.
 */
export interface PodChanges {
  /** The labels of the Pods that are watched. */
  readonly labels: Readonly<Record<string, string>>;
  /** Begins to follow the Pod of a name, which need not exist yet. */
  follow(pod: string): FollowedPod;
  close(): void;
}

export interface FollowedPod extends Disposable {
  /**
   * Waits until the Pod has changed since the last call, at most until a time, and returns it as it is then. Undefined if it must
   * be read: it was deleted, or the time passed without a change.
   */
  next(seen: V1Pod, untilMs: number, signal?: AbortSignal): Promise<V1Pod | undefined>;
}

export function createPodChanges(open: () => Promise<Cluster>): PodChanges {
  return new Changes(open);
}

interface Follower {
  readonly pod: string;
  /** The last change, unless the follower has taken it. */
  news: { readonly pod: V1Pod | undefined } | undefined;
  pauseMs: number;
  wake(): void;
}

class Changes implements PodChanges {
  readonly labels = { [creatorLabel]: randomUUID() };
  readonly #open: () => Promise<Cluster>;
  readonly #followers = new Set<Follower>();
  #informer: Informer<V1Pod> | undefined;
  #starting = false;
  #isLive = false;
  #again: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(open: () => Promise<Cluster>) {
    this.#open = open;
  }

  follow(pod: string): FollowedPod {
    const follower: Follower = { pod, news: undefined, pauseMs: firstPauseMs, wake: () => undefined };
    this.#followers.add(follower);
    clearTimeout(this.#idle);
    // A watch that can't begin is no failure of those who wait: their own calls meet the same one, and explain it.
    this.#begin().catch(() => undefined);
    return {
      next: async (seen, untilMs, signal) => {
        if (follower.news === undefined) await this.#pause(follower, seen, untilMs, signal);
        const news = follower.news;
        follower.news = undefined;
        return news?.pod;
      },
      [Symbol.dispose]: () => {
        this.#followers.delete(follower);
        if (this.#followers.size === 0) this.#idle = setTimeout(() => this.close(), idleMs).unref();
      },
    };
  }

  close(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#again);
    this.#end();
  }

  #end(): void {
    this.#isLive = false;
    void this.#informer?.stop();
    this.#informer = undefined;
  }

  async #begin(): Promise<void> {
    if (this.#informer !== undefined || this.#starting) return;
    this.#starting = true;
    try {
      const { informOfPods } = await this.#open();
      const informer = informOfPods(`${creatorLabel}=${this.labels[creatorLabel]}`, () => this.#listed(informer));
      this.#informer = informer;
      for (const change of ['add', 'update'] as const)
        informer.on(change, (pod) => this.#tell(pod.metadata?.name, pod));
      informer.on('delete', ({ metadata }) => this.#tell(metadata?.name, undefined));
      informer.on('error', () => this.#failed(informer));
      await informer.start();
      // It does not notice itself that it was stopped meanwhile.
      if (this.#informer !== informer) await informer.stop();
    } finally {
      this.#starting = false;
    }
  }

  /** Has every Pod read once, because the list lacks those that were deleted before it. */
  #listed(informer: Informer<V1Pod>): void {
    if (this.#informer !== informer) return;
    this.#isLive = true;
    for (const { pod } of this.#followers) this.#tell(pod, undefined);
  }

  #failed(informer: Informer<V1Pod>): void {
    if (this.#informer !== informer) return;
    this.#end();
    this.#again = setTimeout(() => {
      if (this.#followers.size > 0) this.#begin().catch(() => undefined);
    }, againMs).unref();
  }

  #tell(name: string | undefined, pod: V1Pod | undefined): void {
    for (const follower of this.#followers) {
      if (follower.pod !== name) continue;
      follower.news = { pod };
      follower.wake();
    }
  }

  /** Waits for news of a Pod: for long if it is watched, else until it is time to read it again. */
  async #pause(follower: Follower, seen: V1Pod, untilMs: number, signal?: AbortSignal): Promise<void> {
    const isWatched = this.#isLive && seen.metadata?.labels?.[creatorLabel] === this.labels[creatorLabel];
    const pauseMs = isWatched ? silentMs : follower.pauseMs;
    if (!isWatched) follower.pauseMs = Math.min(pauseMs * 1.5, longestPauseMs);
    const over = new AbortController();
    const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
    const pause = delay(Math.min(pauseMs, Math.max(1, untilMs - Date.now())), undefined, { signal: stop });
    pause.catch(() => undefined);
    const changed = new Promise<void>((resolve) => {
      follower.wake = resolve;
    });
    await Promise.race([changed, pause]).finally(() => over.abort());
  }
}
