import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { SamplingCore } from '../../core.ts';
import type { SampleEvent, SampleRequest, SamplerCore } from '../../sampler-core.ts';
import { type ServerDirectories, writeAtomically } from '../directories.ts';

/** A checkpoint under a name of its own. */
export interface PinnedVersion {
  readonly name: string;
  readonly path: string;
  /** Seconds since the epoch. */
  readonly since: number;
}

/**
 * Checkpoints that requests can name beside the version in service. Each has a sampler of its own while it receives requests,
 * and otherwise takes only a line in a file. A restarted server has the same pinned versions.
 */
export interface PinnedVersions {
  list(): readonly PinnedVersion[];
  /** Pins a checkpoint, replacing another one under the same name; the same one gets a new time. Durable before it returns. */
  pin(name: string, path: string): Promise<void>;
  /** Returns false when no version has this name. */
  unpin(name: string): Promise<boolean>;
  /** Null when no version has this name. */
  sampler(name: string): Pick<SamplerCore, 'generate'> | null;
  /** Returns the number of these requests that were unfinished. */
  abort(requestIds: readonly string[] | 'all'): Promise<number>;
  close(): Promise<void>;
}

/** Time without requests after which a sampler ends, since it takes memory for all of its slots. */
const idleMs = 10_000;

interface RunningSampler {
  readonly core: Promise<SamplingCore>;
  requests: number;
  idle: NodeJS.Timeout | undefined;
}

const pinnedFile = z.array(z.strictObject({ name: z.string(), path: z.string(), since: z.number() }));

/** Reads the pinned versions. `open` starts a sampler on the weights of one, whose tokens carry its name as their version. */
export function openPinnedVersions(
  directories: ServerDirectories,
  open: (version: PinnedVersion) => Promise<SamplingCore>,
): PinnedVersions {
  const pinned = new Map(readPinned(directories.pinned).map((version) => [version.name, version]));
  const running = new Map<string, RunningSampler>();
  const write = (): Promise<void> => writeAtomically(directories.pinned, JSON.stringify([...pinned.values()]));

  /** Starts a sampler. One that cannot start, or dies, is forgotten, so that the next request starts another. */
  function start(version: PinnedVersion): RunningSampler {
    const core = open(version);
    const started: RunningSampler = { core, requests: 0, idle: undefined };
    const forget = (): void => {
      if (running.get(version.name) === started) running.delete(version.name);
    };
    core.then(({ crashed }) => crashed.then(forget), forget);
    running.set(version.name, started);
    return started;
  }

  async function end(name: string): Promise<void> {
    const sampler = running.get(name);
    running.delete(name);
    clearTimeout(sampler?.idle);
    await sampler?.core.then(
      (core) => core.close(),
      () => {},
    );
  }

  async function* generate(
    version: PinnedVersion,
    request: SampleRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<SampleEvent> {
    const used = running.get(version.name) ?? start(version);
    clearTimeout(used.idle);
    used.requests += 1;
    try {
      const { sampler } = await used.core;
      yield* sampler.generate(request, signal);
    } finally {
      used.requests -= 1;
      if (used.requests === 0 && running.get(version.name) === used) {
        used.idle = setTimeout(() => void end(version.name), idleMs).unref();
      }
    }
  }

  return {
    list: () => [...pinned.values()],
    async pin(name, path) {
      if (pinned.get(name)?.path !== path) await end(name);
      pinned.set(name, { name, path, since: Math.floor(Date.now() / 1000) });
      await write();
    },
    async unpin(name) {
      if (!pinned.delete(name)) return false;
      await write();
      await end(name);
      return true;
    },
    sampler(name) {
      const version = pinned.get(name);
      return version === undefined ? null : { generate: (request, signal) => generate(version, request, signal) };
    },
    async abort(requestIds) {
      const cores = await Promise.allSettled([...running.values()].map(({ core }) => core));
      const samplers = cores.flatMap((core) => (core.status === 'fulfilled' ? [core.value.sampler] : []));
      const aborted = await Promise.all(samplers.map((sampler) => sampler.abort(requestIds)));
      return aborted.reduce((sum, count) => sum + count, 0);
    },
    close: async () => void (await Promise.all([...running.keys()].map(end))),
  };
}

function readPinned(path: string): readonly PinnedVersion[] {
  return existsSync(path) ? pinnedFile.parse(JSON.parse(readFileSync(path, 'utf8'))) : [];
}
