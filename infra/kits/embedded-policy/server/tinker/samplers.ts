import { randomUUID } from 'node:crypto';
import type { SamplingCore } from '../../core.ts';
import type { SampleRequest } from '../../sampler-core.ts';

export interface SampledSequence {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly stopReason: 'stop' | 'length';
  readonly promptLogprobs: readonly (number | null)[] | null;
}

/**
 * Samples from any checkpoint, for Tinker clients, on a sampler that agents never use. Requests of one checkpoint run together;
 * another checkpoint waits until they are done, which is why a p-queue with its fixed concurrency does not fit.
 */
export interface Samplers {
  sample(path: string, requests: readonly Omit<SampleRequest, 'requestId'>[]): Promise<readonly SampledSequence[]>;
  close(): Promise<void>;
}

export function createSamplers(openCore: () => Promise<SamplingCore>): Samplers {
  let core: Promise<SamplingCore> | null = null;
  let current: string | null = null;
  let active = 0;
  const queue: { readonly path: string; readonly start: (load: boolean) => void }[] = [];

  /** Starts every request that may run now. No path is current while weights load, so that nothing else starts meanwhile. */
  function startNext(): void {
    for (let head = queue[0]; head !== undefined && (active === 0 || head.path === current); head = queue[0]) {
      queue.shift();
      active += 1;
      const load = head.path !== current;
      if (load) current = null;
      head.start(load);
    }
  }

  async function waitForTurn(path: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    queue.push({ path, start: resolve });
    startNext();
    return promise;
  }

  return {
    async sample(path, requests) {
      const load = await waitForTurn(path);
      try {
        core ??= openCore();
        const { sampler } = await core;
        if (load) {
          await sampler.loadWeights(path, path);
          current = path;
          startNext();
        }
        return await Promise.all(
          requests.map((request) => collect(sampler.generate({ ...request, requestId: randomUUID() }))),
        );
      } finally {
        active -= 1;
        startNext();
      }
    },
    async close() {
      if (core !== null) await (await core).close();
    },
  };
}

async function collect(events: ReturnType<SamplingCore['sampler']['generate']>): Promise<SampledSequence> {
  const tokens: number[] = [];
  const logprobs: number[] = [];
  let promptLogprobs: readonly (number | null)[] | null = null;
  for await (const event of events) {
    if (event.type === 'prompt') promptLogprobs = event.logprobs;
    else if (event.type === 'token') {
      tokens.push(event.tokenId);
      logprobs.push(event.logprob);
    } else if (event.reason === 'abort') throw new Error('sampling was aborted: the server is closing');
    else return { tokens, logprobs, stopReason: event.reason, promptLogprobs };
  }
  throw new Error('the events of the sampling request ended before its finish');
}
