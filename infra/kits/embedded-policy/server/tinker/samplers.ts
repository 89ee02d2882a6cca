import { randomUUID } from 'node:crypto';
import type { PolicyCore, SampleRequest } from '../../core.ts';

export interface SampledSequence {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly stopReason: 'stop' | 'length';
  readonly promptLogprobs: readonly (number | null)[] | null;
}

/**
 * Sampling of any checkpoint, for Tinker clients, on a sampler of its own: the engine's agents never see its weights.
 * Requests of one checkpoint run together; another checkpoint waits until they are done.
 */
export interface Samplers {
  sample(path: string, requests: readonly Omit<SampleRequest, 'requestId'>[]): Promise<readonly SampledSequence[]>;
  close(): Promise<void>;
}

export function createSamplers(openCore: () => Promise<PolicyCore>): Samplers {
  let core: Promise<PolicyCore> | null = null;
  let current: string | null = null;
  let active = 0;
  const queue: { readonly path: string; readonly start: (load: boolean) => void }[] = [];

  /** While weights are loaded there is no current path, so nothing starts beside the one that loads. */
  function pump(): void {
    for (let head = queue[0]; head !== undefined && (active === 0 || head.path === current); head = queue[0]) {
      queue.shift();
      active += 1;
      const load = head.path !== current;
      if (load) current = null;
      head.start(load);
    }
  }

  async function turn(path: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    queue.push({ path, start: resolve });
    pump();
    return promise;
  }

  return {
    async sample(path, requests) {
      const load = await turn(path);
      try {
        core ??= openCore();
        const { sampler } = await core;
        if (load) {
          await sampler.loadWeights(path, path);
          current = path;
          pump();
        }
        return await Promise.all(
          requests.map((request) => collect(sampler.generate({ ...request, requestId: randomUUID() }))),
        );
      } finally {
        active -= 1;
        pump();
      }
    },
    async close() {
      if (core !== null) await (await core).close();
    },
  };
}

async function collect(events: ReturnType<PolicyCore['sampler']['generate']>): Promise<SampledSequence> {
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
  throw new Error('expected sampling to finish, its events ended before');
}
