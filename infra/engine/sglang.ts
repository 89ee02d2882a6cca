import { isLoaded } from './adapters.ts';
import type { Engine, EngineOptions } from './engine.ts';
import { createHttpEngine, type EngineDialect, type EngineServer } from './http-engine.ts';
import { adapterPrefix } from './labels.ts';
import { generateFrom } from './sglang/generate.ts';
import { healthOf, type ServerSizes, sizesOf } from './sglang/health.ts';
import { adapterRoutes, publishWeights } from './sglang/publish.ts';

/**
 * Drives SGLang 0.5.3 and later over HTTP. Start it with `--incremental-streaming-output`: without it, every chunk repeats
 * all tokens before it, and a turn of n tokens costs n² to read.
 *
 * Not covered: servers behind a router (each replica is an engine of its own), logprobs at temperatures other than 1.
 */
export function createSglangEngine(options: EngineOptions): Engine {
  return createHttpEngine(options, createSglangDialect);
}

function createSglangDialect({ connection, model, policy, method, baseVersion }: EngineServer): EngineDialect {
  const prefix = adapterPrefix(model, policy);
  let sizes: ServerSizes | null = null;
  return {
    adapterRoutes,
    generate: (selected, request, signal) =>
      generateFrom({ connection, model, selected, wanted: { policy, baseVersion } }, request, signal),
    async health(signal) {
      sizes ??= await sizesOf(connection, signal);
      return healthOf(connection, { model, policy, method }, sizes, signal);
    },
    publishByReload: (publication, signal) => publishWeights(connection, publication, signal),
    // The server has a single set of whole weights, so only adapters can be pinned.
    pinVersion: async (version, signal) => method === 'lora' && isLoaded(connection, { prefix, version }, signal),
    unpinVersions: async () => {},
    forgetServer() {
      sizes = null;
    },
  };
}
