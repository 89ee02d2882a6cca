import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { PolicyCore, SampleEvent, SampleRequest, SamplerCore } from '../../core.ts';
import { type Places, writeAtomically } from '../places.ts';

/** A checkpoint under a name of its own. */
export interface HeldWeights {
  readonly name: string;
  readonly path: string;
  /** Seconds since the epoch. */
  readonly since: number;
}

/**
 * Checkpoints that can be sampled by beside what is in service. Each has a sampler of its own while requests for it come, and
 * is but a line in a file otherwise. A restarted server holds what it held.
 */
export interface Held {
  list(): readonly HeldWeights[];
  /** Another one under the same name takes its place; the same one begins anew in its time. Durable before it returns. */
  hold(name: string, path: string): Promise<void>;
  /** False: there was none. */
  release(name: string): Promise<boolean>;
  /** Null: nothing is held under this name. */
  sampler(name: string): Pick<SamplerCore, 'generate'> | null;
  /** How many of these requests were unfinished. */
  abort(requestIds: readonly string[] | 'all'): Promise<number>;
  close(): Promise<void>;
}

/** A sampler takes memory for all of its slots. */
const idleMs = 10_000;

interface Running {
  readonly core: Promise<PolicyCore>;
  requests: number;
  idle: NodeJS.Timeout | undefined;
}

const file = z.array(z.strictObject({ name: z.string(), path: z.string(), since: z.number() }));

/** `open` starts a sampler with the weights of a checkpoint, whose tokens carry the name as their version. */
export function openHeld(places: Places, open: (weights: HeldWeights) => Promise<PolicyCore>): Held {
  const held = new Map(readHeld(places.held).map((one) => [one.name, one]));
  const running = new Map<string, Running>();
  const write = (): Promise<void> => writeAtomically(places.held, JSON.stringify([...held.values()]));

  /** One that can't start, or dies, is started again by the next request. */
  function start(weights: HeldWeights): Running {
    const core = open(weights);
    const started: Running = { core, requests: 0, idle: undefined };
    const forget = (): void => {
      if (running.get(weights.name) === started) running.delete(weights.name);
    };
    core.then(({ crashed }) => crashed.then(forget), forget);
    running.set(weights.name, started);
    return started;
  }

  async function end(name: string): Promise<void> {
    const one = running.get(name);
    running.delete(name);
    clearTimeout(one?.idle);
    await one?.core.then(
      (core) => core.close(),
      () => {},
    );
  }

  async function* generate(
    weights: HeldWeights,
    request: SampleRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<SampleEvent> {
    const one = running.get(weights.name) ?? start(weights);
    clearTimeout(one.idle);
    one.requests += 1;
    try {
      const { sampler } = await one.core;
      yield* sampler.generate(request, signal);
    } finally {
      one.requests -= 1;
      if (one.requests === 0 && running.get(weights.name) === one) {
        one.idle = setTimeout(() => void end(weights.name), idleMs).unref();
      }
    }
  }

  return {
    list: () => [...held.values()],
    async hold(name, path) {
      if (held.get(name)?.path !== path) await end(name);
      held.set(name, { name, path, since: Math.floor(Date.now() / 1000) });
      await write();
    },
    async release(name) {
      if (!held.delete(name)) return false;
      await write();
      await end(name);
      return true;
    },
    sampler(name) {
      const weights = held.get(name);
      return weights === undefined ? null : { generate: (request, signal) => generate(weights, request, signal) };
    },
    async abort(requestIds) {
      const cores = await Promise.allSettled([...running.values()].map(({ core }) => core));
      const opened = cores.flatMap((core) => (core.status === 'fulfilled' ? [core.value.sampler] : []));
      const aborted = await Promise.all(opened.map((sampler) => sampler.abort(requestIds)));
      return aborted.reduce((sum, count) => sum + count, 0);
    },
    close: async () => void (await Promise.all([...running.keys()].map(end))),
  };
}

function readHeld(path: string): readonly HeldWeights[] {
  return existsSync(path) ? file.parse(JSON.parse(readFileSync(path, 'utf8'))) : [];
}
