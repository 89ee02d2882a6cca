import type { EngineCapacity, GenerateRequest } from '../engine.ts';

/** The requests that one replica may work on at the same time. */
export interface RequestSlots {
  /** Takes a slot and returns the function that releases it; null when none is free. */
  take(request: GenerateRequest): (() => void) | null;
  /** Calls the listener after each release, until the returned function is called. Each has its turn to be the first. */
  onRelease(listener: () => void): () => void;
}

/** The slots of servers by their URL: several policies that one server serves share its slots. */
export interface SlotTable {
  /** Returns the slots of a server. `reportedCapacity` replaces what an earlier caller gave. */
  of(url: string, reportedCapacity: () => EngineCapacity | undefined): RequestSlots;
}

export function createSlotTable(options: SlotOptions): SlotTable {
  const servers = new Map<string, RequestSlots>();
  const capacities = new Map<string, () => EngineCapacity | undefined>();
  return {
    of(url, reportedCapacity) {
      capacities.set(url, reportedCapacity);
      const slots = servers.get(url) ?? createRequestSlots(options, () => capacities.get(url)?.());
      servers.set(url, slots);
      return slots;
    },
  };
}

/**
 * Tokens of a reply that are reserved for it. Few turns are longer, and an engine that runs out of cache queues requests
 * itself.
 */
const reservedTokens = 4_096;
/** The number of concurrent requests for an engine that reports no limit: vLLM's own default. */
const defaultRequests = 256;

export interface SlotOptions {
  /** Null: derived from the capacity that the engine reports. */
  readonly requestsAtOnce: number | null;
  /** Processes that send requests to the same engine; each takes an equal share. Default: one. */
  readonly sharers?: number;
}

/**
 * Limits a replica to the requests that the setting allows. Without a setting, the engine's reported capacity counts: its
 * running batch, and its KV cache, of which a request takes its prompt and the reserved tokens. An idle engine accepts any
 * request.
 */
export function createRequestSlots(
  { requestsAtOnce, sharers = 1 }: SlotOptions,
  reportedCapacity: () => EngineCapacity | undefined,
): RequestSlots {
  let requests = 0;
  let tokens = 0;
  const listeners: (() => void)[] = [];

  function fits(added: number): boolean {
    if (requests === 0) return true;
    if (requestsAtOnce !== null) return requests < requestsAtOnce / sharers;
    const { requests: batch, kvTokens } = reportedCapacity() ?? { requests: null, kvTokens: null };
    if (batch === null && kvTokens === null) return requests < defaultRequests / sharers;
    return (
      (batch === null || requests < batch / sharers) && (kvTokens === null || tokens + added <= kvTokens / sharers)
    );
  }

  return {
    take({ prompt, maxTokens }) {
      const needed = prompt.length + Math.min(maxTokens, reservedTokens);
      if (!fits(needed)) return null;
      requests += 1;
      tokens += needed;
      let isReleased = false;
      return () => {
        if (isReleased) return;
        isReleased = true;
        requests -= 1;
        tokens -= needed;
        const [first] = listeners.splice(0, 1);
        if (first !== undefined) listeners.push(first);
        for (const listener of [...listeners]) listener();
      };
    },
    onRelease(listener) {
      listeners.push(listener);
      return () => void listeners.splice(listeners.indexOf(listener), 1);
    },
  };
}
